package report

import (
	"fmt"

	"highwater/analyze"
)

// remedies lists a finding's ways out, each with what its replay says.
func (p *printer) remedies(all []analyze.Remedy) {
	for _, r := range all {
		p.paragraph("    - ", r.Text)
		if r.Counterfactual == nil {
			continue
		}
		c := *r.Counterfactual
		c.Settings = map[string]string{}
		for name, v := range r.WhatIf {
			c.Settings[name] = v
		}
		for stage, v := range r.Scale {
			c.Settings[stage] = scaleText(v)
		}
		p.counterfactual("      ", &c)
	}
}

// scaleText is a stage's speed as a share of its time: 0.8 of its time.
func scaleText(v float64) string { return fmt.Sprintf("%.3g of its time", v) }
