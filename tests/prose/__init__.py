"""What the report says in words, document by document, and what in its figures' CSVs says so."""
