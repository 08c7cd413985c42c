"""Random schedules: what people do, interleaved with faults, on a site of real processes; at the
end everything must be there as it was asked for, once. `python -m bench.faults` runs them."""
