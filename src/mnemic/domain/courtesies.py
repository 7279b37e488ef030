"""Telling what a text says from how politely it says it: content words against function words and courtesies.

The lists are short and of several languages; a language that is not listed only loses refusals, never texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mnemic.domain.terms import query_terms

_COURTESIES = """
ok okay k kk okey thank thanks thx ty cheers please pls plz yes yeah yea yep yup ya no nope nah hi hello hey heya yo hiya
bye goodbye cya good great nice cool awesome amazing wonderful fantastic lovely excellent brilliant perfect super sweet
wow whoa oh ah aww aw haha lol lmao rofl omg hmm hm um uh huh ha hehe ugh phew yay congrats congratulations sure right
exactly absolutely definitely totally certainly indeed true agree agreed see know known understand understood get got
gotcha sound sounds look looking forward fine well alright welcome worry worries problem problems trouble np sorry apology
excuse pardon interesting funny hilarious fun fair enough point question questions way thing things something anything
everything nothing stuff like love enjoy glad happy pleased pleasure delighted appreciate hope wish guess think thought
suppose believe feel mean say said tell talk speak chat hear heard listen listening wait minute moment second sec bit lot
lots much many more less again back later soon day today night morning evening afternoon weekend week time luck lucky
take care keep going go come make made sense work works done job help helping helpful helped need free ask continue
explain explaining explanation share sharing kind best better one ones time another same here there now then already
really still even maybe perhaps probably honest honestly actually basically course anytime whatever ever never mind bad
boss buddy friend dude man bro guy guys folks dear everyone all two lmk brb ttyl idk imo tbh btw fyi gm gn wbu hbu up
let want wanted try patience reply respond response answer long short little great read reading hear seen meet meeting
sleep rest evening yourself definitely truly incredible incredibly impressive inspiring beautiful cute proud
"""
# Function words of languages whose own list the keyword index does not have, and their courtesies.
_ELSEWHERE = """
el la los las lo un una unos unas de del al a en y e o u que qué es son está están estoy ser estar por para con sin se te
tu tú ti yo mi me nos su sus le les ya muy más pero si sí no como cómo qué tal bien bueno buena buenos buenas días tardes
noches gracias muchas mucho favor hola adiós hasta luego pronto vemos vale claro perfecto genial nada placer ayuda ahora
acuerdo contigo conmigo entendido encanta pasa tranquilo tranquila jajaja jaja descanses exacto eso esto
der die das den dem des ein eine einen einem einer und oder ist sind war bin bist ich du er sie es wir ihr mir dir mich
dich uns sich zu zum zur im in an am auf mit von für bei nach bis auch noch schon so ja nein nicht na wie was geht gut
guten gute gern gerne geschehen danke dank vielen bitte schön schönen alles klar kein keine problem genau hallo tschüss
morgen abend tag nacht später hilfe deine dein klingt prima toll super
le la les un une des du de et ou est sont je tu il elle nous vous ils on me te se ce cette ça à au aux en dans pour avec
ne pas plus très bien bon bonne oui non si merci beaucoup bonjour bonsoir salut revoir bientôt journée soirée nuit rien
avec plaisir accord marche va comment toi moi votre vos ton ta aide sûr pas problème c est d accord bravo
o os as um uma do da dos das no na em e que é são eu você te se com por para não sim muito muita bem bom boa dia tarde
noite obrigado obrigada ajuda pela pelo tudo sem oi olá tchau claro kkkk até logo
il lo gli i un una di del della che è sono ho non sì si con per in molto grazie mille prego figurati va bene ciao come
stai dopo buongiorno buonasera certo perfetto
и в не на я ты он она мы вы они что как это с у за по да нет хорошо понял поняла спасибо большое пожалуйста привет
здравствуйте дела конечно пока до свидания ладно ок
شكرا جزيلا نعم لا مرحبا حسنا धन्यवाद नमस्ते हाँ जी ठीक है teşekkür teşekkürler ederim merhaba evet hayır tamam
tack så mycket hej ja nej bra dank je wel hoi goed dziękuję bardzo cześć dobrze tak nie kiitos takk
"""
_UNSPACED = re.compile(
    "谢谢|多谢|感谢|帮助|帮忙|没问题|没关系|不客气|好的|好吧|你好|您好|早上好|晚上好|早安|晚安|再见|明白了?|知道了?|了解|怎么样|最近|当然|"
    "可以|哈+|呵+|嘿+|嗯+|哦+|[好的了吗呢吧啊呀是很你您我他她们也都对行]|"
    "ありがとう(?:ございま(?:す|した))?|はい|うん|ええ|わかりました|分かりました|了解(?:です|しました)?|おはよう(?:ございます)?|"
    "こんにちは|こんばんは|おやすみ(?:なさい)?|お疲れ様(?:です|でした)?|お願いします|なるほど|いいね|いいです|すみません|"
    "ごめん(?:なさい)?|よろしく|そうですね|そうです|大丈夫(?:です)?|です|ます|でした|[wｗ]{2,}|"
    "감사합니다|고마워요?|고맙습니다|네|예|알겠습니다|알겠어요?|안녕하세요|안녕|괜찮아요?|좋아요?|ㅋ+|ㅎ+|ㅠ+"
)
_LAUGH = re.compile(r"(?:a?(?:ha|he|hi|ho|ja|je|ji|xa|ах|ха)+[hj]?|l+o+l+|k{3,}|w{3,}|5{3,}|[hm]+|a+w+|o+h+|w+o+w+|yay+|so+)")
_STRETCHED = re.compile(r"(.)\1{2,}")

_SELF = frozenset(
    "i i'm im i've i'd i'll my mine we we're we've our ours me myself yo mi mis soy tengo vivo nací nuestro nuestra ich "
    "mein meine meinen meiner wir unser unsere je j'ai mon ma mes nous notre eu meu minha sou tenho io mio mia sono я мой "
    "моя мне меня у".split()
)  # fmt: skip
_SELF_UNSPACED = re.compile("[我私僕俺저나내]|わたし|ぼく|우리")
_CUES = re.compile(
    r"\b(?:i|we)(?:'ll|’ll| will| shall| am going to| are going to|'m going to|’m going to| have to| need to| must"
    r"| decided| agreed| plan| promise| intend| should)\b"
    r"|\blet(?:'|’)?s\b|\bgoing to\b|\bremember to\b|\bremind\b|\bdon(?:'|’)?t forget\b|\btodo\b|\bto-do\b|\bdeadline\b"
    r"|\bdue (?:on|by|in)\b|\bdecision\b|\bdecided\b|\bagreed (?:to|on|that)\b|\baction items?\b|\bappointment\b"
    r"|\bscheduled?\b|\bplan(?:s|ned|ning)? (?:to|on|for)\b|\bpromised?\b|\bmake sure\b|\balways\b|\bnever\b|\bprefer\b"
    r"|\bnext step\b|\bfollow up\b|\bby (?:tomorrow|monday|tuesday|wednesday|thursday|friday|saturday|sunday|next)\b"
    r"|\bvoy a\b|\bvamos a\b|\btengo que\b|\bhay que\b|\bdebo\b|\brecuerda\b|\bdecid(?:í|imos)\b|\bsiempre\b|\bnunca\b"
    r"|\bich werde\b|\bwir werden\b|\bich muss\b|\bwir müssen\b|\blass(?:t)? uns\b|\bvergiss nicht\b|\bimmer\b|\bbeschlossen\b"
    r"|\bje vais\b|\bje dois\b|\bnous allons\b|\bil faut\b|\bn'oublie pas\b|\btoujours\b|\bdécidé\b"
    r"|必须|决定|记得|别忘|打算|しなければ|予定|約束|決め",
)


@dataclass(frozen=True, slots=True)
class Weighed:
    """`words` of a text, how many different ones carry `content`, `cues` of action, and whether it says something
    `of_self`, in the first person."""

    words: int
    content: int
    cues: int
    of_self: bool


def weigh(text: str) -> Weighed:
    """About 1 us a word."""
    lowered = text.casefold().replace("’", "'")
    spoken, unspaced = (lowered, 0) if text.isascii() else _UNSPACED.subn(" ", lowered)
    terms = query_terms(spoken)
    content = sum(1 for term in terms if _carries(term))
    words = len(lowered.split()) + unspaced
    raw = {word.strip(".,;:!?()\"'") for word in lowered.split()}
    first = not raw.isdisjoint(_SELF) or bool(not text.isascii() and _SELF_UNSPACED.search(lowered))
    return Weighed(words, content, sum(1 for _ in _CUES.finditer(lowered)), first and content > 0)


def states_something_of_self(text: str) -> bool:
    """Whether the text is a statement in the first person with content: "I'm vegan", not "I see"."""
    return weigh(text).of_self


def _carries(term: str) -> bool:
    """Whether a term says something: no courtesy, no laugh, no emoji, no literal (its words stand for it)."""
    if not term[0].isalnum() or term in _empty():
        return False
    plain = _STRETCHED.sub(r"\1", term)
    return not (plain in _empty() or _LAUGH.fullmatch(term))


@lru_cache(maxsize=1)
def _empty() -> frozenset[str]:
    return frozenset(query_terms(f"{_COURTESIES} {_ELSEWHERE}"))
