"""Types and functions that all other packages use. Imports only the standard library."""
