package report

import (
	"fmt"
	"io"
	"math"
	"net/url"
	"path"

	"highwater/analyze"
)

// SARIF 2.1.0, as far as findings need it: https://docs.oasis-open.org/sarif/sarif/v2.1.0.
const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://json.schemastore.org/sarif-2.1.0.json"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
	Properties  map[string]any    `json:"properties,omitempty"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
	Full  sarifText `json:"fullDescription"`
	Help  sarifText `json:"help"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Notifications []sarifNotification `json:"toolExecutionNotifications"`
}

type sarifNotification struct {
	Level   string    `json:"level"`
	Message sarifText `json:"message"`
	Rule    *sarifRef `json:"associatedRule,omitempty"`
}

type sarifRef struct {
	ID    string `json:"id"`
	Index int    `json:"index"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Kind         string            `json:"kind"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
	Properties   map[string]any    `json:"properties"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
	Message  *sarifText    `json:"message,omitempty"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

// sarifLevel is SARIF's word for a severity.
func sarifLevel(s analyze.Severity) string {
	if s == analyze.Info {
		return "note"
	}
	return string(s)
}

// SARIF writes a report as a SARIF 2.1.0 log: one rule an analyzer, one result a finding, located
// in the manifest of the trace at dir. Analyzers that could not look are notifications.
func SARIF(w io.Writer, r *analyze.Report, dir, version string) error {
	run := sarifRun{
		Tool:    sarifTool{sarifDriver{Name: "highwater", Version: version, Rules: []sarifRule{}}},
		Results: []sarifResult{},
		Invocations: []sarifInvocation{{
			Successful: true, Notifications: []sarifNotification{},
		}},
		Properties: map[string]any{"verdict": r.Verdict},
	}
	index := map[string]int{}
	for i, a := range analyze.All() {
		d := a.Doc()
		index[d.Name] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: d.Name, Short: sarifText{d.Summary}, Full: sarifText{d.Summary},
			Help: sarifText{fmt.Sprintf("%s\n\nRefuted by: %s\n\nMore: docs/findings/%s.md",
				d.Remedy, d.RefutedBy, d.Name)},
		})
	}
	for _, s := range r.NotApplicable {
		n := &run.Invocations[0].Notifications
		*n = append(*n, sarifNotification{
			Level: "note", Message: sarifText{s.Analyzer + " not applicable: " + s.Why},
			Rule: &sarifRef{s.Analyzer, index[s.Analyzer]},
		})
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		run.Results = append(run.Results, sarifOf(f, index[f.ID], dir))
	}
	return JSON(w, sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}})
}

func sarifOf(f *analyze.Finding, rule int, dir string) sarifResult {
	numbers := map[string]any{}
	for _, n := range f.Evidence.Numbers {
		numbers[n.Name] = nil
		if !math.IsNaN(n.Value) && !math.IsInf(n.Value, 0) {
			numbers[n.Name] = n.Value
		}
	}
	uri := (&url.URL{Path: path.Join(dir, "manifest.json")}).EscapedPath()
	where := sarifLocation{Physical: sarifPhysical{sarifArtifact{uri}}}
	if win := f.Evidence.Window; win != nil {
		where.Message = &sarifText{fmt.Sprintf("from %d ns to %d ns of the trace", win.BeginNS,
			win.EndNS)}
	}
	return sarifResult{
		RuleID: f.ID, RuleIndex: rule, Kind: "fail", Level: sarifLevel(f.Severity),
		Message: sarifText{f.Sentence + " " + f.Remedy}, Locations: []sarifLocation{where},
		// The finding, not its figures: those differ from run to run.
		Fingerprints: map[string]string{"highwaterFinding/v1": f.ID + "/" + f.Check},
		Properties: map[string]any{
			"check": f.Check, "evidence": numbers, "refuted_by": f.RefutedBy,
			"what_if": f.WhatIf, "counterfactual": f.Counterfactual, "page": f.Page,
		},
	}
}
