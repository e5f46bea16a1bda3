package main

import (
	"math"
	"strings"

	"highwater/analyze/compare"
	"highwater/analyze/report/plot"
)

// historyCharts are one chart a metric, those that changed first, in the order of the changes.
func historyCharts(h *compare.History) []plot.Chart {
	var charts []plot.Chart
	drawn := map[compare.Metric]bool{}
	add := func(m *compare.MetricHistory) {
		if !drawn[m.Metric] && hasPoint(m) {
			drawn[m.Metric] = true
			charts = append(charts, historyChart(h, m))
		}
	}
	byMetric := map[compare.Metric]*compare.MetricHistory{}
	for i := range h.Metrics {
		byMetric[h.Metrics[i].Metric] = &h.Metrics[i]
	}
	for _, c := range h.Changes {
		add(byMetric[c.Metric])
	}
	for i := range h.Metrics {
		add(&h.Metrics[i])
	}
	return charts
}

func hasPoint(m *compare.MetricHistory) bool {
	for _, p := range m.Points {
		if p.Median != nil {
			return true
		}
	}
	return false
}

func historyChart(h *compare.History, m *compare.MetricHistory) plot.Chart {
	c := plot.Chart{
		Title: m.Label(),
		X:     plot.Axis{Label: "commit"},
		Y:     plot.Axis{Label: m.Label(), Unit: plotUnit(m.Name), FromZero: true},
	}
	s := plot.Series{Name: "median of the commit's runs"}
	for i, commit := range h.Commits {
		c.X.Categories = append(c.X.Categories, commit.Label)
		p := plot.Point{X: float64(i), Y: math.NaN(), Low: math.NaN(), High: math.NaN()}
		if x := m.Points[i]; x.Median != nil {
			p.Y, p.Low, p.High = *x.Median, *x.Low, *x.High
			p.Note = plural(len(commit.Traces), "run")
		}
		s.Points = append(s.Points, p)
	}
	c.Series = append(c.Series, s)
	for k := range h.Changes {
		if x := &h.Changes[k]; x.Metric == m.Metric {
			c.Marks = append(c.Marks, plot.Mark{Name: x.Verdict, X: float64(x.Index) - 0.5})
			c.Notes = append(c.Notes, upperFirst(changeText(x))+".")
		}
	}
	return c
}

func plotUnit(name string) plot.Unit {
	switch {
	case strings.HasSuffix(name, "_bytes"):
		return plot.Bytes
	case strings.HasSuffix(name, "_ns"):
		return plot.Nanos
	}
	return plot.Plain
}
