"""The turns of phrase that tell a fact about the caller from everything else that is said in a call.

Only tables: alternatives stand between bars or on lines of their own, blanks round them do not count;
a choice within one alternative is written with @.
"""

from __future__ import annotations

import re


def any_of(table: str) -> str:
    parts = [part.strip().replace("@", "|") for part in re.split(r"[|\n]", table)]
    return "(?:" + "|".join(part for part in parts if part) + ")"


def words(table: str, after: str = "") -> re.Pattern[str]:
    """A pattern for one of the alternatives, whole words only, in any case."""
    return re.compile(rf"{any_of(table)}\b{after}", re.IGNORECASE)


# The dialogue about the memory itself: it is answered by the tools and teaches nothing.
FORGETTING = re.compile(
    r"(?:^|[.,!?]\s+|\b(?:please|you to|can you|could you|would you|will you|should|and|just)\s+)"
    r"(?:don't |do not |also |just |please )?(?:forget|erase|delete|remember|unlearn)\b(?! to\b)",
    re.IGNORECASE,
)
_KEEPING = (
    "remember | save | saving | store | storing | record | keep | log | memori[sz]e | note | remembering"
)
_SAVED = "remembered | saved | stored | recorded | kept | logged | memori[sz]ed"
_THIS = any_of(
    r"""
    this | that | it | these | those | them | any of | any ?thing | what I | the following | a word of
    my (?!seat@place@spot) | : | me (?=[.!?,;:]@$)
    """
)
# "Please don't save that": a wish about the memory. Not "I don't remember that", which says something else.
OFF_THE_RECORD = re.compile(
    r"(?P<before>(?:\b[\w']+ ){0,3})\b(?:"
    rf"(?P<order>(?:don't|do not|(?<=you )didn't|never|not to|not|stop)(?: you)?(?: please| ever| even| to)*"
    rf" (?:{any_of(_KEEPING)})(?: down)?(?: {_THIS}|:))"
    rf"|(?:don't|do not|wouldn't|not) (?:want|like)(?: \w+){{1,3}} to"
    rf" (?:be )?{any_of(_KEEPING + '|' + _SAVED)}"
    rf"|(?:not|never|n't) (?:to )?be {any_of(_SAVED)}"
    rf"|no need to {any_of(_KEEPING)} {_THIS}"
    r"|keep (?:this|that|it) (?:to yourself|between us|private|secret|confidential)"
    r"|(?:this|that|it)(?: is|'s) (?:strictly )?(?:confidential|private)"
    r"(?=\s*(?:[,.:!;]|$|so\b|and\b|please))"
    r"|stop (?:remembering|recording|saving)\s*(?:[.!]|$)"
    r"|off the record|not for the record"
    r"|between (?:us|you and me|ourselves|the two of us)(?=\s*(?:[,.:!;\u2013\u2014-]|$))"
    r")",
    re.IGNORECASE,
)
OWN_MEMORY = re.compile(
    r"\b(?:I|we|he|she|they|people|who)(?:'d|'ll| can| could| would| will| do| really| just| honestly| also"
    r"| still| usually)* $|\b(?:does|did) $|(?:^|[.!?,] )you $",
    re.IGNORECASE,
)
RETRACTED = re.compile(
    r"(?<!not )(?<!no )"
    r"(?:\b(?:just|only|I'm|I am|I was|am) (?:only |just )?(?:kidding|joking|messing with you)\b"
    r"|(?:^|[.!?,] )(?:kidding|joking)\b|\bjk\b"
    r"|\b(?:that's|that is|that was|it's|it was|this is) (?:just |only )?a joke\b)",
    re.IGNORECASE,
)
# What opens an account is no fact about a person; it stays searchable as it was said, and no more.
SECRET = re.compile(
    r"\b(?:pass ?words?|pass ?codes?|pass ?phrases?|my pin|pin (?:is|code|number|for)|cvv|cvc|ssn|iban"
    r"|(?:social )?security (?:code|number)|(?:card|account|routing|passport|national insurance|licen[cs]e)"
    r" (?:number|details)|sort code|(?:api|secret|private|access|licen[cs]e|recovery) key"
    r"|(?:one[- ]time|verification|access|alarm|door|gate|safe|unlock|recovery|login) code)s?\b"
    r"|\bsocial security (?:is|no)\b|\bcredit card is\b|\b(?:\d[ -]?){13,19}\b|\b\d{3}-\d{2}-\d{4}\b",
    re.IGNORECASE,
)
MARKS = re.compile(r"\*+|`+|~~+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|(?:^|(?<=\n))[ \t]*(?:#{1,6}|>|[-+])[ \t]+")

_VALUE = r"(?P<value>\d[\d.,]*(?: years old)?|(?:(?:an?|the) )?[^\W\d_][\w'-]*(?: [^\W\d_][\w'-]*){0,2})"
# "Sorry, I meant Austin": the value of the statement before it is another one.
MEANT = re.compile(
    r"(?:(?i:no|nope|oh|wait|oops|sorry|actually|well|um|uh|er|and|but)\b[,.:!]*\s+)*"
    rf"(?i:I mean|I meant|I meant to say|make that|correction)[,:]? {_VALUE}"
)
# Bare, it must look like a value: "No, 31", "no, Austin", and not "no, thanks".
CORRECTED = re.compile(
    r"(?i:no|nope|oops|wait|sorry)[,.]? (?:(?i:wait|sorry|no|actually|it's)[,.]? )*"
    r"(?P<value>\d[\d.,]*(?: years old)?|(?!I\b|OK\b|Thanks\b|Yes\b|No\b)[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2})"
)
NO_VALUE = words(
    """
    it | that | this | I | I'm | I've | my | you | he | she | they | we | what | how | why | who | really
    seriously | yes | no | well | like | come | look | just | not | there | so | if | when | everything
    thanks | thank | sorry | okay | ok | never | please
    """
)
CORRECTION_WITHIN = re.compile(
    r"(?:,\s*(?=(?:no|sorry|wait|oops|actually)\b)|,?\s+(?=(?:I mean|I meant|make that|correction)\b))"
    r"(?=(?:[\w']+[, ]*){2,8}[.!]?$)",
    re.IGNORECASE,
)
VALUE_BEFORE = re.compile(
    r"(?P<kept>.*\b(?:in|at|to|from|as|for|is|am|'m|turned|have|'s|are|like|love|called|speak|drive|play))"
    r"(?P<article> (?:an?|the))? [\w'. -]{1,40}",
    re.IGNORECASE,
)
# What a doctor says of the caller, unlike what others say of them, is taken for true.
DOCTOR = re.compile(
    r"my (?:[a-z]+ )?(?:doctor|gp|physician|cardiologist|dermatologist|neurologist|specialist|oncologist)"
    r"(?: just)? (?:says|said|told me|tells me|confirmed)(?: that)?"
    r" (?=I (?:have|am|need to|must|can't|cannot)\b|I'm )",
    re.IGNORECASE,
)
QUESTION = words(
    """
    do | does | did | am | is | are | was | were | can | could | will | would | should | shall | may | might
    have | has | had | what | where | when | who | whose | why | how | which | isn't | aren't | don't
    doesn't | won't | can't | couldn't | wouldn't
    """
)
TRAILING_QUESTION = re.compile(
    r"[,.;]?\s+(?:so |and |but )?(?:can|could|is|are|do|does|did|will|would|what|how|where|when|which|should"
    r"|don't|isn't)\b[^,]*\?$",
    re.IGNORECASE,
)
HYPOTHETICAL = words(
    """
    if | suppose | supposing | imagine | let's say | say | what if | unless | maybe | perhaps | pretend
    I wish | in case | assuming | hypothetically | for example
    """
)
REPORTED = re.compile(
    r"\b(?:he|she|they|it|you|who|people|everyone|somebody|someone|(?:my|the|our|a) [\w' ]{2,30}?"
    r"|[A-Z][a-z]+)"
    r"(?:'s| is| was| has| always| just| also)? "
    + any_of("said|says|say|saying|told|tells|tell|thinks?|thought|claims?|claimed|asked|asks|insists?|wrote")
    + r"\b"
)
LEAD = re.compile(
    any_of(
        """
        well | um+ | uh+ | er+ | hmm+ | so | yeah | yes | yep | yup | no | nope | nah | okay | ok | oh | ah
        hey | hi | hello | hiya | good (?:morning@evening@afternoon) | look | listen | like | right | sure
        great | thanks | thank you | sorry | and | but | also | plus | because | cause | by the way
        you know(?: what)? | to be honest | honestly | actually | in fact | just so you know
        for your information | fyi | the thing is | as I said | like I said | I mean | you see | of course
        anyway | basically | well now | now | then | please note(?: that)? | note that | first of all
        yes please | alright | please | how are you(?: doing)?(?: today)? | nice to meet you
        """
    )
    + r"\b[,.:!?]*\s*",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"(?:,? "
    + any_of(
        """
        by the way | you know | please | thanks | thank you(?: very much)? | though | actually | too
        as well | okay | ok | right | just so you know | to be honest | if that helps | if that matters
        in case that helps | or something | I think | I guess | or whatever | you see | honestly | really
        (?:it's @it is )?(?:nice@good) to (?:meet@talk to@hear from@speak to@speak with) you
        """
    )
    + r")+[.!]*$",
    re.IGNORECASE,
)
JOINT = re.compile(
    r"\s*(?:,|\band\b|\bbut\b|\bso\b|\bplus\b)+\s*"
    r"(?=I\b|(?:he|she|they|we|you|it|there|this|that)\b|can\s+you\b|could\s+you\b"
    r"|my\s[\w' -]{1,40}?(?:'s|\s"
    + any_of("is|are|was|were|has|had|lives?|works?|likes?|loves?|hates?|does|hurts?|can|said|says|told")
    + r")\b)"
)
SAME_SUBJECT = re.compile(
    r",? (?:and|but) (?="
    + any_of(
        """
        have an? | have two | have three | have four | have five | am an? | am | live in | live with
        work at | work for | work as | work in | speak | own an? | drive an? | prefer | hate | love | do not
        don't | cannot | can't | can | play the | moved to | used to
        """
    )
    + " )"
)
DANGLING = re.compile(r"(?:[\s,]+(?:and|but|so|or|because|that))?[\s,]*$")
YOU = re.compile(r"\b(?:you|your|yours|yourself|you're|you've|you'll)\b", re.IGNORECASE)
OURS = words("we(?:'re)? | we've", " (?:live|have|own|moved|are|got|just moved|just had)\\b")
HEDGED = re.compile(
    r"I (?:think|believe|guess|suppose|figure|feel like)(?: that)? (?=I'm |I am |I have |I've |my )"
)
# A second "I" that nothing joins to the first: two sentences without the stop between them.
RUN_ON = re.compile(
    r"(?<!\bbecause)(?<!\bwhen)(?<!\bif)(?<!\bsince)(?<!\bthat)(?<!\bwhich)(?<!\bwhere)(?<!\bwhile)"
    r"(?<!\buntil)(?<!\bafter)(?<!\bbefore)(?<!\bas)(?<!\bthan)(?<!\bwhat)(?<!\bhow)(?<!\bwhenever)"
    r"(?<!\bthough)(?<!\bunless) I\b(?!\.)"
)
_DAY = "monday | tuesday | wednesday | thursday | friday | saturday | sunday"
SOON = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|(?:this|next|last|coming) "
    + any_of(
        "morning | afternoon | evening | night | week | weekend | month | year | spring | summer | autumn"
        f"| winter | {_DAY}"
    )
    + r"|in (?:a|an|one|two|three|a few|\d+) (?:hours?|days?|weeks?|months?|minutes?)"
    + rf"|(?:days?|weeks?|months?|years?) ago|on {any_of(_DAY)})\b",
    re.IGNORECASE,
)

NOT_A_NAME = words(
    """
    back | later | tomorrow | when | if | on | at | after | a | an | the | maybe | anytime | again | now
    today | tonight | soon | crazy | old | asap | sir | whatever | anything | that | this | it | them | him
    her | first | in | from | about | for | not | fine | ready | just | here | directly | instead | sometime
    whenever | early | spelled | none | neither | no
    """
)
CALENDAR = words(
    """
    christmas | easter | january | february | march | april | may | june | july | august | september
    october | november | december |
    """
    + _DAY
)
NAME = re.compile(
    r"(?:(?i:"
    + any_of(
        """
        my (?:first @full )?name(?:'s@ is) | the name(?:'s@ is) | name's | I'm called | I am called
        I go by | (?:just @please @you can )?call me
        (?:everyone@everybody@people@my friends@friends) calls? me
        """
    )
    + r") (?P<name>[^\W\d_][\w'.-]*(?: [A-Z][\w'.-]*){0,3})"
    r"|(?i:this is|it's|it is) (?P<here>[A-Z][\w-]+(?: [A-Z][\w-]+)?)(?: (?:speaking|here|calling|again))?)"
)

# What a person is for a moment, or is doing on the telephone.
PASSING = words(
    """
    fine | good | well | great | okay | ok | alright | all right | sorry | here | back | there | ready
    done | sure | afraid | glad | happy | sad | tired | hungry | thirsty | bored | busy | late | confused
    lost | curious | excited | worried | stuck | kidding | joking | serious | right | wrong | aware | able
    about | just | doing | being | having | getting | trying | calling | looking | wondering | asking
    talking | speaking | thinking | listening | waiting | driving | leaving | hoping | saying | referring
    guessing | assuming | pleased | so | too | very | not | in | on | at | off | out | gonna | supposed
    sitting | standing | holding | using | making | telling | seeing | feeling | checking | ringing
    phoning | interested | free | available | one | the one | the person | the guy | the same | the only
    her | his | their | that | this | what | it | better | home | concerned | impressed | surprised
    disappointed | annoyed | upset | angry | frustrated | grateful | sick | cold | hot | starving
    exhausted | running | unsure | certain | positive | following | missing | going | the | sleepy | drunk
    stressed | overwhelmed | nervous | scared | relieved | thrilled | mad | furious | speechless | awake
    dying | bloated | lonely | moved | shocked | pissed | fed up | beat | dead | cool
    """
)
# "Dead tired", "pretty hungry": what is said of a mood says nothing of the mood's being one.
DEGREE = re.compile(
    r"(?:dead|dog|bone|pretty|quite|rather|a (?:bit|little|tad)|kind of|sort of|super|extremely|incredibly"
    r"|completely|totally|absolutely|utterly|all|truly) (?=\w)",
    re.IGNORECASE,
)
LASTING = words(
    r"""
    afraid of | scared of | terrified of | really afraid of | very afraid of | fond of | tired of | sick of
    good at | bad at | really good at | interested in | happy in | in my \w+ies | in my early | in my mid
    in my late | in the army | in the navy | in the military | in tech | in the [a-z]+ business
    in the [a-z]+ industry | in a wheelchair | on medication | on insulin | on a diet | on the board
    out of work | going to be an? | going to be the | going deaf | going blind | one of | off meat
    the (?:proud )?(?:ceo@cto@cfo@owner@founder@co-founder@head@manager@director@president@captain)
    the (?:youngest@oldest@eldest@middle child@only child@only son@only daughter@mother@father) | off sugar
    off gluten | off alcohol | homeless | homeschooled | very allergic | so allergic
    very religious | doing an? | doing my | having a baby | getting married | getting divorced
    getting a dog | getting a cat | using a wheelchair | using a walker | running a | running my
    """
)
MODAL = words("would|will|could|should|might|may|shall|must|need|want|wanna|gotta|wish|hope")
GOAL = re.compile(
    r"(?:want|hope|plan) to (?:learn|become|lose|visit|study|quit|stop smoking|run a)\b"
    r"|need to (?:take|avoid|use|wear) (?!it|this|that|the|a)\w",
    re.IGNORECASE,
)
ABLE = words(
    """
    eat | drink | have (?!a look@it) | swim | drive | speak | play | walk | read | cook | sing | dance
    ride | stand (?!by@here) | tolerate | digest | smell | taste | fly | use | wear | code | write | ski
    lift | climb | sleep
    """
)
DUTY = words("take|avoid|wear|use|inject|be careful")
# What people "have" in a call and not in their lives.
IDLE = re.compile(
    r"(?:to|it|that|one|said|told|seen|heard|tried|already|noticed|read|nothing"
    r"|been (?:waiting|trying|calling|on hold))\b"
    r"|(?:(?:an?|one|another|some|no|any|two|few|a few|quick|other|more|small|big|three"
    r"|four|five|six|ten|fifteen|twenty|thirty|forty|several|half|only|just|about|around|maybe"
    r"|like|roughly|exactly|\d{1,3}) )*"
    + any_of(
        """
        questions? | problems? | issues? | requests? | complaints? | moments? | minutes? | seconds? | looks?
        hours? | mins? | secs? | feeling | ideas? | doubts? | trouble | clue | time | things?
        favou?rs? | concerns? | suggestions?
        guess | say
        """
    )
    + r"\b",
    re.IGNORECASE,
)
# "I don't know", "I don't have any questions": answers, not facts.
UNSAID = words(
    """
    know | think | understand | remember | see | hear | mean | want | need | care | mind | believe | get it
    get that | get what | get why | recall | agree | feel | have a clue | have time | have it | have that
    have anything | have to | have the | have enough | have any questions? | have any other | have any idea
    like it | like that | like this | do it | do that | do this | say | guess | trust | wish | really
    """
)
HAD = re.compile(
    r"(?:(?:an?|my|two|three|some|[\w-]+) ){0,3}"
    + any_of(
        """
        surgery | operation | stroke | heart attack | baby | son | daughter | accident | transplant | cancer
        miscarriage | dog | cat
        """
    )
    + r"\b",
    re.IGNORECASE,
)
WAS = words(
    r"""
    born | raised | diagnosed | married | adopted | named | brought up | promoted | laid off | fired | hired
    vegetarian | vegan | an? (?!bit\b@little\b@mistake\b@good\b@bad\b@great\b@joke\b)[\w-]+
    """
)
POINTING = re.compile(
    r"(?:\w+ ){1,2}"
    + any_of(
        """
        it | that | this | these | those | here | there | one | him | her | them | so | what | how
        everything | something | nothing | anything
        """
    )
    + r"|(?:like|love|hate|enjoy|prefer) (?:this|that|these|those) .*",
    re.IGNORECASE,
)
# Verbs of talking, feeling and handling that fill a call.
TALK = words(
    """
    see | know | think | guess | mean | understand | agree | apologi[sz]e | appreciate | thank | hear
    suppose | believe | bet | forgot? | wonder | ask | asked | tell | told | say | said | call | called
    try | tried | wait | waited | check | checked | look | looked | promise | swear | doubt | feel | felt
    mind | notice | noticed | heard | saw | thought | knew | missed | talk | talked | spoke | want | wanted
    need | needed | did | do | can | get it | got it | got that | got your | just | am | have | had | was
    were | recommend | suggest | assume | expect | imagine | prefer not | plan | hope | wish | care | blame
    paid | sent | put | ran | came | took | made | found | ate | drank | drove | flew | slept | spent
    wrote | kept | let | chose | brought | caught | rang | woke | understood | hung | set | hit | cut
    stood | wore | threw | accidentally | insist | demand | request | require | remember | mention
    mentioned | meant | speak with | speak to | changed my mind | started to | won't | lost it
    lost connection | left it | left a message
    """
)

EVERYDAY: dict[str, re.Pattern[str]] = {
    verb: re.compile(pattern, re.IGNORECASE)
    for verb, pattern in {
        "bought": r"an? ",
        "broke": r"(?:my|a|up)\b",
        "began": r"\w+ing\b",
        "buy": r"(?!it|that|this|the)\w",
        "changed": r"(?:jobs|my (?:name|job|number|address|diet))\b",
        "come": r"from\b",
        "do": any_of("yoga|pilates|karate|judo|tai|crossfit|gymnastics|ballet|shift|night|volunteer|charity")
        + r"\b",
        "finished": r"(?:school|college|university|my (?:degree|phd|masters|training))\b",
        "follow": r"(?!up|it|that|the instructions)\w",
        "gave": r"up\b",
        "get": r"(?!(?:an? )?(?:calls?|errors?|messages?|e-?mails?|the|it|that|this|in|out|back|to|on|off)\b)"
        r"\w",
        "go": r"(?:to (?:church|school|college|university|the gym|bed|mass|temple|mosque|therapy)|\w+ing)"
        r"\b",
        "got": r"(?:an? (?!error|call|message|question|problem|e-?mail|letter|minute|second|code)\w|married"
        r"|divorced|engaged|promoted|fired|laid off|my (?:degree|licen[cs]e|diploma)|two |three |new )",
        "grew": r"up\b",
        "hold": r"(?!on|it|that)\w",
        "keep": r"(?!\w+ing\b|it|that)\w",
        "left": r"(?:my (?:job|husband|wife)|school|university|college|home)\b",
        "live": r"(?!here|there)\w",
        "lost": r"(?:my (?:job|husband|wife|mother|father|mom|mum|dad|sight|hearing|leg)|(?:\d+|weight)\b)",
        "make": r"(?!sure|sense|it|an? (?:mistake|reservation|booking|call|payment|complaint)|the)\w",
        "met": r"my (?:wife|husband|partner)\b",
        "moved": r"(?!it|that|on\b|the (?:appointment|meeting|booking))\w",
        "opened": r"an? (?:\w+ )?(?:shop|store|business|restaurant|bakery|cafe|studio|practice)\b",
        "read": r"(?!it|that|this|the (?:e-?mail|message|letter|manual|instructions))\w",
        "returned": r"to (?:\w+ (?:to live|for good)|work|school|university)",
        "run": r"(?!into|out|it)\w",
        "sold": r"my \w",
        "started": r"(?:an? (?:new )?\w|\w+ing (?!to)|my own|at |school|college|university)",
        "switched": r"(?:to|from|jobs)\b",
        "take": r"(?!it|that|this|the (?!bus|train|subway|tube|metro|pill)|care|one"
        r"|an? (?:look|seat|minute|moment|break))\w",
        "trained": r"(?:as|to be|for)\b",
        "turned": r"(?:\d|vegan|vegetarian)",
        "use": r"(?!it|that|this|the (?:app|website|site))\w",
        "watch": r"(?!it|that|out)\w",
        "went": r"(?:vegan|vegetarian|blind|deaf|to (?:school|college|university)|through a divorce)\b",
        "work": r"(?!on (?:it|that|this)|here|there)\w",
    }.items()
}
"""Verbs with everyday uses ("get", "go", "take"): what must follow for them to say something lasting."""

PEOPLE = re.compile(
    r"\b"
    + any_of(
        r"""
        wife | husband | partner | spouse | sons? | daughters? | kids? | child | children | baby | mother
        mom | mum | mummy | mommy | father | dad | daddy | parents? | brothers? | sisters? | siblings?
        twins? | uncle | aunt | auntie | cousins? | nephews? | nieces? | grandma | grandpa | grandmother
        grandfather | grandparents | grandson | granddaughter | grandchildren | granny | nan | friends?
        boyfriend | girlfriend | fianc[ée]e? | ex | boss | colleagues? | coworkers? | co-worker | manager
        teacher | doctor | dentist | therapist | lawyer | landlord | landlady | neighbou?rs? | roommates?
        flatmate | housemate | family | guests? | clients? | customers? | team | in-laws? | step\w+ | buddy
        mate | nurse | carer | caregiver | assistant | secretary | employees? | people | men | women | guys?
        girls? | boys? | folks
        """
    )
    + r"\b",
    re.IGNORECASE,
)
KIN_NAME = re.compile(
    r"my (?P<who>[\w -]{2,40}?)(?:'s name is|'s name's| is called| is named|'s called|'s named)"
    r" (?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)"
)
BELONGS = re.compile(
    r"my (?P<thing>[^\W\d_][\w' -]{0,50}?)"
    r"(?:(?P<verb> is| are| was| were|'s| isn't| aren't) (?P<not>not )?(?P<rest>.+)"
    r"| (?P<aches>hurts|hurt|aches|ache))",
    re.IGNORECASE,
)
NOTHING = words(
    """
    question | problem | issue | point | guess | bad | pleasure | apologies | apology | understanding
    mistake | goodness | god | concern | request | order | internet | wi-?fi | connection | screen | line
    signal | battery | next | other | only | first(?! name) | last(?! name) | second | thoughts? | opinion
    plan | idea
    answer | word | turn | fault | call | voice | microphone | sound | audio | bill | account | package
    computer | laptop
    """
)
PASSING_THING = words(
    "on the way|on its way|on my way|here|ready|there|good|fine|that|what|how|where|to \\w+"
)
