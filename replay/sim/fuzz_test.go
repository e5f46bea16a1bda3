package sim_test

import (
	"errors"
	"testing"

	"highwater/replay/models"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
)

// FuzzRun runs whatever model can be read: it finishes all jobs or says what stops it.
func FuzzRun(f *testing.F) {
	add := func(m *pipeline.Model, err error) {
		if err != nil {
			f.Fatal(err)
		}
		m.Policy.Jobs = 2
		text, err := pipeline.Format(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	add(pipeline.Example(), nil)
	for _, name := range []string{"cuzk/v1b", "cuzk/v8", "cuzk/v9", "cuzk/v14"} {
		add(models.Load(name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := pipeline.Parse(text)
		if err != nil || m.Policy.Jobs*m.Policy.Partitions > 64 ||
			m.Policy.GPUWorkers*m.Policy.Devices > 64 {
			return
		}
		s, err := sim.New(m)
		if err != nil {
			return
		}
		st, err := s.Run(sim.Draw{Seed: 1, Bootstrap: true})
		var dead *sim.DeadlockError
		switch {
		case err == nil && st.JobsDone != m.Policy.Jobs:
			t.Errorf("%d of %d jobs done without an error", st.JobsDone, m.Policy.Jobs)
		case err != nil && !errors.As(err, &dead):
			t.Errorf("got %v", err)
		case err != nil && len(dead.Waits) == 0:
			t.Errorf("a deadlock that does not say who waits: %v", err)
		}
	})
}
