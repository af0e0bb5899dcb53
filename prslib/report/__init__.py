"""Turn runs into tables, sentences, verdicts and figures: what notebooks share."""
