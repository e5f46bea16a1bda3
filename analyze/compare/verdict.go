package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"highwater/internal/units"
)

// conclude draws the whole comparison's verdict from its outcomes. asked says that only some were
// asked for: then each of them counts as a headline figure.
func (d *Diff) conclude(same, asked bool) {
	var open []string
	for _, x := range d.Differences {
		if !x.Accepted {
			open = append(open, x.String())
		}
	}
	switch {
	case len(open) > 0:
		d.Verdict, d.Basis = Inconclusive, BasisNone
		d.Sentence = "The sides differ in more than the code: " + someOf(open, 3) + "."
		return
	case same:
		d.Verdict, d.Basis = Neutral, BasisSame
		d.BasisText = "both sides are the same traces"
		d.Sentence = "Both sides are the same traces: nothing differs."
		return
	}
	d.Verdict = d.worst(asked)
	d.Sentence = d.sentence()
}

// worst is regression where an outcome regressed, else improvement where one improved, else
// inconclusive where a decisive figure is or nothing is known, else neutral. Decisive are headline
// figures, and all that were asked for by name.
func (d *Diff) worst(asked bool) string {
	count := map[string]int{}
	decisive := false
	for i := range d.Outcomes {
		r := &d.Outcomes[i]
		count[r.Verdict]++
		decisive = decisive || r.Verdict == Inconclusive && (asked || r.Headline())
	}
	switch {
	case count[Regression] > 0:
		return Regression
	case count[Improvement] > 0:
		return Improvement
	case decisive || count[Neutral] == 0:
		return Inconclusive
	}
	return Neutral
}

// sentence is the verdict with its largest effects.
func (d *Diff) sentence() string {
	switch d.Verdict {
	case Regression, Improvement:
		effects := d.effects(d.Verdict)
		text := strings.ToUpper(d.Verdict[:1]) + d.Verdict[1:] + ": " + someOf(effects, 4) + "."
		if better := d.effects(Improvement); d.Verdict == Regression && len(better) > 0 {
			text += " Better: " + someOf(better, 2) + "."
		}
		return text
	case Inconclusive:
		effects := d.effects(Inconclusive)
		if len(effects) == 0 {
			return "Inconclusive: no outcome is known of every run."
		}
		return "Inconclusive: no outcome moved beyond noise, and noise hides what would matter: " +
			someOf(effects, 3) + "."
	}
	return "Neutral: no outcome moved by as much as matters."
}

// effects lists the outcomes of a verdict: headline figures, then stages, then classes, each by size.
func (d *Diff) effects(verdict string) []string {
	var rows []*Row
	for i := range d.Outcomes {
		r := &d.Outcomes[i]
		if r.Verdict == verdict && r.Delta != nil {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *Row) int {
		if c := cmp.Compare(a.weight(), b.weight()); c != 0 {
			return c
		}
		switch x, y := a.effect(), b.effect(); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = r.Label() + " " + r.Change()
	}
	return list
}

// weight is a row's place in the sentence.
func (r *Row) weight() int {
	switch {
	case r.Headline():
		return 0
	case r.Name == StageTime:
		return 1
	}
	return 2
}

// Change is the relative change for people; "new" where there was nothing before.
func (r *Row) Change() string {
	switch {
	case r.Delta == nil:
		return "not known"
	case r.DeltaRatio != nil:
		return units.SignedPercent(*r.DeltaRatio)
	case *r.Delta == 0:
		return units.Percent(0)
	}
	return "new"
}

// someOf joins the first few, and counts the rest.
func someOf(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
