"""Turn runs into tables, sentences, verdicts and figures; each notebook has its module here."""
