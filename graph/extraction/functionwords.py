"""Words that name nothing by themselves, in the languages that are written with capitals."""

_ENGLISH = """
a about above according across after afterwards again against ago all almost along already also
although always am among an and another any anyone anything are around as at away back be became
because become been before began behind being below beside besides between beyond both but by
called came can cannot could despite did do does doing done down due during each early eight
either eleven else even ever every everyone everything except far few first five following for
formerly four from further get give given go had has have having he hence her here hers herself
him himself his how however i if in include included including indeed inside instead into is it
its itself just known last late later least less like likewise located made main many may me
meanwhile might mine more moreover most mostly much must my myself named near nearly neither
never nevertheless next nine no nobody none nor not nothing now of off often on once one only
onto or other others otherwise our ours out outside over own per perhaps rather recent recently
said same second several she should since six so some someone something sometimes soon still
such ten than that the their theirs them themselves then there thereafter therefore these they
third this those though three through throughout thus to today together too toward towards
twelve two under unlike until up upon us use used using usually various very via was we well
were what whatever when whenever where whereas wherever whether which while who whoever whole
whom whose why will with within without would yes yet you your yours
"""
_GERMAN = """
aber alle allem allen aller alles als am an ander andere auch auf aus außer bei beim bin bis
bist da dabei dadurch dafür damit danach dann daran darauf darüber das dass dazu dein dem den
denn der deren des dessen die dies diese diesem diesen dieser dieses doch dort du durch ein eine
einem einen einer eines einige er es etwa etwas euch für gegen haben hat hatte hatten ich ihm
ihn ihnen ihr ihre ihrem ihren ihrer im in innerhalb ist ja jede jedem jeden jeder jedes jedoch
kann kein keine können man manche mehr mein mit muss nach nachdem neben nicht nichts noch nun
nur ob obwohl oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind so sobald
solche soll sondern sonst sowie um und uns unser unter viel viele vom von vor war waren warum
was wegen weil welche welchem welchen welcher welches wenn wer werden wie wieder will wir wird
wo wohin wurde wurden während zu zum zur zwar zwischen über
"""
#: French, Spanish, Italian, Portuguese, Dutch.
_OTHERS = """
aan agli ai al algo algunos alla alle allo alors als anche ante antes ao aos après aquel así até
au aucun aunque aussi autre aux avait avant avec avoir bij cada car ce ceci cela celle celui ces
cet cette chaque che chez chi ci com come comme comment como con contra contre cosa cual cuando
cui cuál cuándo cuánto da dal dalla dalle dan dans das dat de dei del della delle dello depuis
desde después deux deze di die dit do donc donde door dopo dos dove du durante dónde e ed een el
ela ele eles ella ellas elle elles ellos em en entonces entre er era esa ese eso essa esse est
esta estas este esto estos está et eu eux fait foi fue gli ha hacia had hasta hay heb heeft het
hier hij ho hoe há i ik il ils in io is isso isto je já la las le lei les leur leurs lo loro
lorsque los lui ma maar mais mas me mentre mes mesmo met mi mientras moins mon muito muy más
même na naar nas ne nel nella nelle ni niet no nog non nos notre nous num numa não o of ogni om
on onder ont ook op os otra otro ou over où par para parce pas pela pelo pendant per perché pero
però peu più plus poi por porque pour pourquoi prima pues puis qual quale quali quand quando
quanto que quel quella quelle quelles quello quels quem questa questo qui quien quién quoi qué
sa sans se según selon sem senza ser ses seu si sin sino sobre son sono sont sous su sua sue sui
sul sulla suo suoi sur sus são sí ta también também tan tandis tanto te tegen tem todo todos
toen tot tous tout toute toutes tra tras très tutti uit uma umas un una une uno unos uns van
veel vers você voici voor vos votre vous waar wanneer waren wat werd wie wordt y ya zal ze zich
zij zijn zonder à às è él était être
"""
_INSIDE_NAMES = """
against al and at aux bin da das de del della den der des di do dos du e el et for ibn in la le
les of on sur ten ter the to und upon van vom von y zu zum zur
"""

#: Articles, pronouns, prepositions, conjunctions, auxiliaries and what questions are asked with.
FUNCTION_WORDS = frozenset(f"{_ENGLISH} {_GERMAN} {_OTHERS}".split())

#: What may stand between the capitalised words of one name, as in `Lord of the Rings`.
INSIDE_NAMES = frozenset(_INSIDE_NAMES.split())
