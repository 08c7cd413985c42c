"""Names in code that tell nothing, and words that only look like names. Pure."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Of keywords, of what every program calls, and of examples.
NOTHING = _words(
    """
    abs add all and any append arg args array as assert async attr await bar base baz bool break
    byte bytes callable case cast catch char check class close cls code concat config const
    continue copy count data def default defer del delete dict do done double echo elif else elsif
    end enum enumerate err error errors eval except exec exit export extend extends false file
    filter final finally find first float fmt fn foo for format from func function get getattr
    global goto has hash hasattr help id if impl import in include index init input insert int
    interface into is isinstance issubclass it item items iter join key keys kwargs lambda last
    len length let line list load local log long loop main make map match max message min mod
    module msg mut name namespace new next nil node none not null num number obj object ok open
    opt option options or out output package panic param params parse pass path pop print printf
    println private proc property protected pub public push put raise range read ref remove repr
    require reset result ret return reversed round run save self set setattr short sizeof size
    slice sort sorted split start static status stop str string strip struct sub sum super switch
    temp test tests then this throw throws time tmp todo true try tuple type typeof types union
    unless unsigned until update use using val value values var vec void when where while with
    write yield zip
    """
)
#: Before or behind a full stop they are words of a sentence.
COMMON = _words(
    """
    a after all also an and are as at be but by can did do does for from had has have he her his
    if in is it its no not of on one or she so than that the their then there these they this to
    was we were what when which who will with you
    """
)
#: What a host ends in.
DOMAINS = _words("com org net edu gov mil int de fr es uk at ch eu it nl us info biz")
#: Of files that people name in texts.
SUFFIXES = (
    "py|pyi|ipynb|js|mjs|cjs|jsx|ts|tsx|java|kt|kts|rs|go|c|cc|cpp|cxx|h|hpp|cs|rb|php|swift|scala|"
    "lua|jl|pl|pm|sh|bash|zsh|ps1|bat|cmd|ex|exs|erl|hs|ml|clj|dart|sql|ddl|html|htm|css|scss|"
    "less|vue|svelte|md|rst|txt|tex|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|properties|xml|xsd|"
    "csv|tsv|parquet|log|lock|proto|graphql|tf|gradle|cmake|mk|pdf|docx|xlsx|pptx|odt|epub|"
    "zip|tar|gz|whl|jar|so|dll|exe|db|sqlite|pem|crt|key|png|jpg|jpeg|gif|svg"
)
