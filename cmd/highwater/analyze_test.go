package main

import (
	"strings"
	"testing"

	"highwater/analyze"
)

// TestLargeTracesAreNotReplayed: a finding then says how to have its counterfactual.
func TestLargeTracesAreNotReplayed(t *testing.T) {
	set := map[string]string{"early_free": "true"}
	r := &analyze.Report{Findings: []analyze.Finding{{ID: "late-free", WhatIf: set}, {ID: "leak"}}}
	leaveOut(r, 10_000_000)
	c := r.Findings[0].Counterfactual
	if c == nil || c.PeakLiveBytes != nil || !strings.Contains(c.Error, "10,000,000 rows") ||
		c.Settings["early_free"] != "true" {
		t.Errorf("counterfactual %+v", c)
	}
	if r.Findings[1].Counterfactual != nil {
		t.Error("a counterfactual that nobody asked for")
	}
}
