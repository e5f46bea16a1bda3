package main

import "highwater/analyze"

func printAnalysis(ui *tui, r *analyze.Report) error { return nil }

func printExplanation(ui *tui, r *analyze.Report) error { return nil }
