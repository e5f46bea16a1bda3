package compare

import (
	"fmt"
	"slices"
	"strings"

	"highwater/tracer/probe"
)

// busyShare is the share of the machine that others may use before a run's times are in doubt.
const busyShare = 0.1

// hostCPU are the counters of CPU time that the whole machine spent at work.
var hostCPU = []string{"system.cpu.time.user", "system.cpu.time.system"}

// others is how many cores other programs used while the jobs ran; false where that was not
// sampled.
func (r *Run) others() (cores float64, ok bool) {
	if r.sampledNS <= 0 || !r.counters[probe.CPUUser] || !r.counters[hostCPU[0]] {
		return 0, false
	}
	total := 0.0
	for _, m := range commonMetrics([]*Run{r}) { // sorted: one sum, whatever the map's order
		if m.Name != Counter {
			continue
		}
		v, name := r.Values[m], m.Subject[strings.LastIndex(m.Subject, " ")+1:]
		switch {
		case slices.Contains(hostCPU, name):
			total += v
		case name == probe.CPUUser || name == probe.CPUSystem:
			total -= v
		}
	}
	return max(0, total) / (float64(r.sampledNS) / 1e9), true
}

// busy says that other programs used more than busyShare of the machine.
func (r *Run) busy() bool {
	cores, ok := r.others()
	return ok && r.Summary.Host != nil && r.Summary.Host.CPUs > 0 &&
		cores > busyShare*float64(r.Summary.Host.CPUs)
}

// busyWarnings says how many runs shared the machine with other programs: their times are noise as
// much as work.
func busyWarnings(base, next []*Run) []string {
	busy, worst, all := 0, 0.0, 0
	for _, r := range slices.Concat(base, next) {
		all++
		if r.busy() {
			cores, _ := r.others()
			busy, worst = busy+1, max(worst, cores)
		}
	}
	if busy == 0 {
		return nil
	}
	return []string{fmt.Sprintf("other programs used more than a tenth of the machine during %d of "+
		"%d runs, up to %.1f cores: record on a quiet machine, or by turns", busy, all, worst)}
}
