"""Telling what a text says from how politely it says it: content words against function words and courtesies.

The lists are short and of several languages; a language that is not listed only loses refusals, never texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mnemic.domain.terms import query_terms

_COURTESIES = """
ok okay k kk okey thank thanks thx ty cheers please pls plz yes yeah yea yep yup ya no nope nah hi hello hey heya
yo hiya bye goodbye cya good great nice cool awesome amazing wonderful fantastic lovely excellent brilliant perfect
super sweet wow whoa oh ah aww aw haha lol lmao rofl omg hmm hm um uh huh ha hehe ugh phew yay congrats
congratulations sure right exactly absolutely definitely totally certainly indeed true truly agree agreed see seen
know known understand understood get got gotcha sound sounds look looks looking forward fine well alright welcome
worry worries problem problems trouble np sorry excuse pardon interesting funny hilarious fun fair enough point
question questions way thing things something anything everything nothing stuff like liked likes love loved loves
enjoy glad happy pleased pleasure delighted appreciate appreciated hope wish guess think thinking thought suppose
believe feel mean means say said saying tell told telling talk talking speak chat hear heard listening wait lot
lots much many more less again back later soon today lucky keep going go goes come make makes made sense works help
helping helped helpful need needed needs ask continue explain explaining sharing one ones another same else here
there now then already really still even maybe perhaps probably honest honestly actually basically course anytime
whatever whats thats hows lets ever never mind dude bro buddy guys folks everyone all lmk brb ttyl idk imo tbh btw
fyi gm gn up let give want wanted patience incredible incredibly impressive inspiring u ur r
"""
_PAIRS = """
good morning|good evening|good afternoon|good night|good day|good time|good luck|good one|good job|good work
good idea|great day|great weekend|great week|great evening|great night|great time|great job|great work|great idea
great one|nice day|nice weekend|nice evening|nice time|nice one|nice job|nice work|nice meeting|nice to|lovely day
lovely evening|lovely weekend|awesome job|amazing job|amazing work|well done|take care|long time|next time|no time
any time|my bad|not bad|too bad|the best|all the|the time|so kind|very kind|kind of|sort of|sleep well|feel free
late reply|one moment|one second|one minute|one sec|a moment|a second|a minute|a sec|a bit|a plan|meet you
meeting you|your help|your patience|the help|have fun|hang on|hold on|keep it|sure boss|thing boss|good man
bless you|come on|way better|even better|much better
"""
# Function words of languages whose own list the keyword index does not have, and their courtesies; none that says
# something in English ("son", "war", "die").
_ELSEWHERE = """
el la los las lo un una unos unas de del al a en y e o u que qué es está están estoy ser estar por para con se te
tu tú ti yo mi me nos su sus le les ya muy más pero si sí no como cómo qué tal bien bueno buena buenos buenas días
tardes noches gracias muchas mucho favor hola adiós hasta luego pronto vemos vale claro perfecto genial nada placer
ayuda ahora acuerdo contigo conmigo entendido encanta pasa tranquilo tranquila jajaja jaja descanses exacto eso
esto der das den dem des ein eine einen einem einer und oder ist sind bist ich du er sie es wir ihr mir dir mich
dich uns sich zu zum zur im in an am auf mit von für bei nach bis auch noch schon so ja nein nicht na wie was geht
gut guten gute gern gerne geschehen danke dank vielen bitte schön schönen alles klar kein keine problem genau hallo
tschüss morgen abend nacht später hilfe deine dein klingt prima toll super le la les un une des du de et ou est
sont je tu il elle nous vous ils on me te se ce cette ça à au aux en dans avec ne plus c'est j'ai très bien bon
bonne oui non si merci beaucoup bonjour bonsoir salut revoir bientôt journée soirée nuit rien avec plaisir accord
marche va comment toi moi votre vos ton ta aide sûr problème c est d accord bravo o os as um uma do da dos das no
na em e que é são eu você te se com por para não sim muito muita bem bom boa dia tarde noite obrigado obrigada
ajuda pela pelo tudo sem oi olá tchau claro kkkk até logo il lo gli i un una di del della che è sono ho non sì si
con per in molto grazie mille prego figurati va bene ciao come stai dopo buongiorno buonasera certo perfetto и в не
на я ты он она мы вы они что как это с у за по да нет хорошо понял поняла спасибо большое пожалуйста привет
здравствуйте дела конечно пока до свидания ладно ок شكرا جزيلا نعم لا مرحبا حسنا धन्यवाद नमस्ते हाँ जी ठीक है
teşekkür teşekkürler ederim merhaba evet hayır tamam tack så mycket hej ja nej dank je wel hoi goed dziękuję bardzo
cześć dobrze tak nie kiitos takk
"""
_UNSPACED = re.compile(
    "谢谢|多谢|感谢|帮助|帮忙|没问题|没关系|不客气|好的|好吧|你好|您好|早上好|晚上好|早安|晚安|再见|明白了?|"
    "知道了?|了解|怎么样|最近|当然|可以|哈+|呵+|嘿+|嗯+|哦+|[好的了吗呢吧啊呀是很你您我他她们也都对行]|"
    "ありがとう(?:ございま(?:す|した))?|はい|うん|ええ|わかりました|分かりました|了解(?:です|しました)?|おはよう(?:ございます)?|"
    "こんにちは|こんばんは|おやすみ(?:なさい)?|お疲れ様(?:です|でした)?|お願いします|なるほど|いいね|いいです|すみません|"
    "ごめん(?:なさい)?|よろしく|そうですね|そうです|大丈夫(?:です)?|です|ます|でした|[wｗ]{2,}|"
    "감사합니다|고마워요?|고맙습니다|네|예|알겠습니다|알겠어요?|안녕하세요|안녕|괜찮아요?|좋아요?|ㅋ+|ㅎ+|ㅠ+"
)
_LAUGH = re.compile(
    r"(?:a?(?:ha|he|hi|ho|ja|je|ji|xa|ах|ха)+[hj]?|l+o+l+|k{3,}|w{3,}|5{3,}|[hm]+|a+w+|o+h+|w+o+w+|yay+|so+)"
)
_STRETCHED = re.compile(r"(.)\1{2,}")

_SELF = """
i i'm im i've i'd i'll my mine we we're we've our ours me myself yo mi mis soy tengo vivo nací nuestro nuestra ich mein
meine meinen meiner wir unser unsere je j'ai mon ma mes nous notre eu meu minha sou tenho io mio mia sono я мой моя мне
меня
"""
_SELF_UNSPACED = re.compile("[我私僕俺저나내]|わたし|ぼく|우리")
_CUES = """
i'll we'll todo to-do deadline remind reminder decision decided appointment schedule scheduled promise promised always
never prefer must recuerda debo decidí decidimos siempre nunca vergiss immer beschlossen muss müssen toujours décidé
dois
"""
_CUE_PAIRS = """
i will|we will|i shall|we shall|i should|we should|i need|we need|i plan|we plan|i promise|i intend|have to|has to
going to|let's go|let's do|let's use|let's try|let's make|let's keep|let's meet|remember to|don't forget|due on
due by|due in|agreed to|agreed on|agreed that|action item|action items|plan to|plans to|planned to|planning to
planned for|make sure|next step|next steps|follow up|by tomorrow|by monday|by tuesday|by wednesday|by thursday
by friday|by saturday|by sunday|by next|voy a|vamos a|tengo que|hay que|no olvides|ich werde|wir werden|lass uns
lasst uns|je vais|nous allons|il faut
"""
_CUES_UNSPACED = re.compile("必须|必須|决定|決め|决心|记得|别忘|打算|しなければ|予定|約束|忘れず|해야|하기로")
_TRIM = ".,;:!?()[]{}<>*_~\"'…«»“”‘¿¡-—–"


@dataclass(frozen=True, slots=True)
class Weighed:
    """`words` of a text, how many different ones carry `content`, `cues` of action, and whether it says something
    `of_self`, in the first person."""

    words: int
    content: int
    cues: int
    of_self: bool


def weigh(text: str) -> Weighed:
    """About half a microsecond a word."""
    lowered = text.casefold().replace("’", "'")
    spoken, unspaced = (lowered, 0) if text.isascii() else _UNSPACED.subn(" ", lowered)
    words = [word.strip(_TRIM) for word in spoken.split()]
    cue_words, pairs, cue_pairs = _words(_CUES), _pairs(_PAIRS), _pairs(_CUE_PAIRS)
    idle: set[int] = set()
    cues = sum(word in cue_words for word in words)
    for place, pair in enumerate(pairwise(words)):
        if pair in pairs:
            idle |= {place, place + 1}
        elif pair in cue_pairs:
            cues += 1
    content = {term for place, word in enumerate(words) if place not in idle for term in _content(word)}
    first = not _words(_SELF).isdisjoint(words)
    if not text.isascii():
        cues += len(_CUES_UNSPACED.findall(lowered))
        first = first or bool(_SELF_UNSPACED.search(lowered))
    return Weighed(len(words) + unspaced, len(content), cues, first and bool(content))


def carries_content(word: str) -> bool:
    """Whether a case-folded word says something."""
    return bool(_content(word))


@lru_cache(maxsize=20_000)
def _content(word: str) -> tuple[str, ...]:
    """The terms of a word that say something: no function word, courtesy, laugh or emoji, and no literal, because its
    words stand for it."""
    plain, empty = _STRETCHED.sub(r"\1", word), _words(_COURTESIES + _ELSEWHERE)
    if plain in empty or word in empty or _LAUGH.fullmatch(plain):
        return ()
    return tuple(term for term in query_terms(word) if term[0].isalnum())


@lru_cache(maxsize=3)
def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


@lru_cache(maxsize=2)
def _pairs(listed: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(pair.split()) for line in listed.splitlines() for pair in line.split("|") if pair)
