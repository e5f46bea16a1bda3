package plan

import (
	"fmt"
	"math"

	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// Reserved is what the rest of a machine used while a trace was recorded: the most that its memory
// less MemAvailable and the recorded process's RSS came to. ok is false where the trace has not both
// counters, or not the machine's memory. The kernel's own memory and page cache that it would not
// give up count; page cache that it would, does not.
func Reserved(t *trace.Trace) (bytes int64, ok bool, err error) {
	ram := float64(t.Manifest.Host.RAMBytes)
	if ram == 0 {
		return 0, false, nil
	}
	rss, most := map[string]float64{}, math.Inf(-1)
	for s, err := range t.Samples() {
		if err != nil {
			return 0, false, fmt.Errorf("read samples: %w", err)
		}
		switch s.Metric {
		case probe.RSS:
			rss[s.Source] = s.Value
		case probe.MemAvailable:
			if len(rss) == 0 {
				continue
			}
			own := 0.0
			for _, v := range rss {
				own += v
			}
			most = max(most, ram-s.Value-own)
		}
	}
	if math.IsInf(most, -1) {
		return 0, false, nil
	}
	return int64(max(most, 0)), true, nil
}
