"""Upkeep: doctor, verify, migrate."""
