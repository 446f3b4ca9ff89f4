"""The parts of a spec that occur several times: sources, requirements, tests, texts as written."""
