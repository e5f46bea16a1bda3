package compare

import (
	"fmt"
	"math"
)

// paceShare is the relative difference of the sides' CPU pace from which it is said.
const paceShare = 0.03

// minPaces is how many samples a run's mean pace takes.
const minPaces = 10

// paceOf is the median of the runs' mean pace, in ns: the CPU time of a computation that is always the
// same, while jobs ran. Nil where not every run has it.
func paceOf(runs []*Run) *float64 {
	var all []float64
	for _, r := range runs {
		if r.paceNS <= 0 {
			return nil
		}
		all = append(all, r.paceNS)
	}
	m := median(all)
	return &m
}

// paceWarnings says that the CPU itself was faster on one side: times on cores differ by about as much
// whatever the code.
func paceWarnings(base, next Side) []string {
	if base.CPUPaceNS == nil || next.CPUPaceNS == nil {
		return nil
	}
	ratio := *next.CPUPaceNS / *base.CPUPaceNS
	if math.Abs(math.Log(ratio)) < math.Log1p(paceShare) {
		return nil
	}
	word := "slower"
	if ratio < 1 {
		word = "faster"
	}
	return []string{fmt.Sprintf("the CPU itself was %s in the new side's runs: a computation that is "+
		"always the same took %.2f times as long. Times on cores differ by about as much whatever the "+
		"code: record both sides by turns, on a machine without neighbours", word, ratio)}
}
