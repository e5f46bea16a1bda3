package replay

import (
	"fmt"

	"highwater/internal/units"
)

// starvedFrom is how many later requests must be served before one before that is worth a warning.
const starvedFrom = 10

// starved is a warning where some request is passed again and again: of the draw that has it worst.
func (f *figures) starved() []string {
	worst := &f.stats[0].Starved
	for i := range f.stats {
		if w := &f.stats[i].Starved; w.Overtaken > worst.Overtaken {
			worst = w
		}
	}
	if worst.Overtaken < starvedFrom {
		return nil
	}
	return []string{fmt.Sprintf("starvation: %s waits %s for %s while %d later requests are served "+
		"before it, in the draw that has it worst", worst.Who, units.Nanos(int64(worst.WaitNS)), worst.For,
		worst.Overtaken)}
}
