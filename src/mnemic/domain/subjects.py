"""Common subjects of conversations, each with words that speak of it: what `topics.py` knows before any text."""

from __future__ import annotations

_LISTED = """
cooking: recipe food kitchen meal ingredient dinner bake boil restaurant taste
travel: trip flight hotel vacation airport tourist luggage destination passport tour
health: doctor medicine illness symptom hospital pain treatment diet diagnosis therapy
fitness: workout exercise gym training running weights yoga muscle stretching cardio
work: job office boss colleague career manager employer promotion salary interview
coding: programming function code software class variable compiler library refactor script
finance: money bank budget investment tax loan savings mortgage stock insurance
configuration: setting option default environment variable parameter flag file enable port
family: mother father sister brother child parent wife husband baby grandmother
relationships: friend partner love dating marriage wedding friendship breakup trust girlfriend
sports: match team player game football tennis score coach tournament race
music: song band concert guitar piano album singer melody instrument rhythm
pets: dog cat puppy kitten animal vet leash paw hamster breed
education: school university student teacher exam course lesson homework degree lecture
weather: rain storm sunny temperature snow wind forecast cloud heat cold
gardening: garden plant seed soil flower vegetable tree grow prune lawn
security: password encryption attack vulnerability authentication key access hacker permission firewall
databases: database query table index sql schema row transaction postgres sqlite
movies: film cinema series actor director episode scene watch drama comedy
books: novel author chapter reading library story fiction poem writer publisher
games: video game console player level chess puzzle board quest gaming
art: painting drawing museum artist gallery sculpture sketch design exhibition colour
photography: photo camera lens picture portrait shutter shoot image exposure tripod
shopping: buy order store price sale discount delivery purchase return refund
housing: house apartment rent landlord move room renovation furniture repair neighbour
transport: car bus train bike traffic driving road fuel parking mechanic
politics: government election vote law president party policy parliament minister protest
history: war century ancient empire historical king revolution past archive museum
science: research experiment theory physics chemistry biology data laboratory hypothesis study
mathematics: equation number theorem probability algebra geometry calculate proof formula integral
nature: forest mountain river animal ocean hiking bird wildlife beach environment
religion: church prayer faith god temple bible mosque spiritual belief priest
language: grammar vocabulary word translation spanish pronounce language sentence speak accent
law: contract court lawyer legal rights lawsuit judge clause liability regulation
business: company customer market sales product startup revenue strategy client marketing
planning: plan schedule deadline milestone goal task roadmap project priority calendar
architecture: system design component module service layer interface pattern microservice dependency
debugging: bug error crash stack trace exception breakpoint log reproduce fix failure
testing: test unit assertion coverage mock regression suite fixture pass fail
deployment: server docker kubernetes release cloud deploy container pipeline production hosting
machine learning: model neural network training dataset embedding inference prediction classifier gpu
web development: website browser html css javascript frontend api page react http
hardware: computer cpu memory disk laptop screen keyboard device cable battery
emotions: feeling happy sad anxious stress angry mood lonely grief fear
events: party birthday celebration festival ceremony invitation guest anniversary christmas conference
volunteering: charity donate community help shelter support cause fundraiser volunteer campaign
fashion: clothes dress shoes style outfit shirt jewelry wear fabric makeup
"""

SUBJECTS: dict[str, tuple[str, ...]] = {
    label: tuple(words.split()) for label, words in (line.split(": ") for line in _LISTED.strip().splitlines())
}
