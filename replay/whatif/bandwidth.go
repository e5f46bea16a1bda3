package whatif

import (
	"errors"

	"highwater/replay/pipeline"
)

// widen multiplies the memory bandwidth that the stages share, and lessens by as much what services
// add to the load on memory.
func widen(m *pipeline.Model, factor float64) error {
	felt := m.Machine.MemoryBandwidth > 0
	m.Machine.MemoryBandwidth *= factor
	for i := range m.Stages {
		felt = felt || m.Stages[i].Sensitivity > 0
		m.Stages[i].Pressure /= factor
	}
	if !felt {
		return errors.New("memory bandwidth: by the law fitted no stage waits for memory, " +
			"so more of it changes nothing that this trace could show; record a run with more workers")
	}
	return nil
}
