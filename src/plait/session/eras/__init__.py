"""The two eras, and what crosses between them: stamps, results, errors, verdicts. Pure, all of it."""
