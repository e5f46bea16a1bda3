package report

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"highwater/analyze/memory"
	"highwater/internal/units"
)

var bars = []rune("▁▂▃▄▅▆▇█")

// sparkline draws a series as one line of bars, each the highest value of its stretch of time, so
// that the peak is always seen.
func (p *printer) sparkline(lead string, s *memory.Series) {
	room := p.style.width() - text.StringWidthWithoutEscSequences(lead) - 12
	if len(s.Buckets) == 0 || room < 10 {
		return
	}
	columns := min(room, len(s.Buckets))
	high := make([]int64, columns)
	top := int64(1)
	for i, b := range s.Buckets {
		c := i * columns / len(s.Buckets)
		if b.Known {
			high[c] = max(high[c], b.Max)
		}
		top = max(top, high[c])
	}
	var line strings.Builder
	for _, v := range high {
		i := int(float64(max(v, 0)) / float64(top) * float64(len(bars)-1))
		line.WriteRune(bars[i])
	}
	p.line("%s%s  %s", lead, line.String(), units.Bytes(top))
}
