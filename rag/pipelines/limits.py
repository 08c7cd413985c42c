"""How large a pipeline and what goes through it may be."""

MAX_NODES = 50
MAX_EDGES = 200
MAX_TOOLS = 40
MAX_WORKERS = 20
MAX_ID_CHARACTERS = 63
MAX_NAME_CHARACTERS = 200
MAX_DESCRIPTION_CHARACTERS = 2_000
MAX_PROMPT_CHARACTERS = 20_000
MAX_CONDITION_CHARACTERS = 500
MAX_FAULTS = 50

#: Turns of a worker, attempts of an evaluator.
MAX_TURNS = 50
#: Rounds of a loop, the first included.
MAX_ROUNDS = 20
DEFAULT_ROUNDS = 3
#: How often all nodes together may be run, whatever the loops say.
MAX_EXECUTIONS = 1_000
#: Nodes that run at the same time.
MAX_PARALLEL = 4

#: Seconds.
MAX_TIMEOUT = 3_600.0
NODE_TIMEOUT = 300.0
RUN_TIMEOUT = 600.0

#: Characters of a question, and of what a node hands on.
MAX_QUESTION_CHARACTERS = 20_000
MAX_OUTPUT_CHARACTERS = 400_000
