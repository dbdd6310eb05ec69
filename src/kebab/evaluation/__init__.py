"""How good search is, measured on judged queries: golden sets, runs, comparisons, reports, suggestions and tuning."""
