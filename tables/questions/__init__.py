"""Questions to tables as plans, without a language model and without Django. Begin with
`plan_question` of `planner`."""
