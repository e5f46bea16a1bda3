package sim_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
)

// Whatever is kept of models that differ a little from one, they do what they would do alone.
func TestProgramsServeOnlyWhatTheyAreOf(t *testing.T) {
	everyPolicy(t, 100, func(t rapid.TB, m *pipeline.Model) {
		var kept sim.Programs
		for _, change := range []func(*pipeline.Model){
			func(*pipeline.Model) {},
			func(m *pipeline.Model) { m.Policy.PartitionWorkers++ },
			func(m *pipeline.Model) { m.Policy.EarlyFree = !m.Policy.EarlyFree },
			func(m *pipeline.Model) { m.Policy.ByteBudget = pipeline.Unbounded },
			func(m *pipeline.Model) { m.Policy.ByteBudget = 1 << 40 },
			func(m *pipeline.Model) { m.Policy.Jobs++ },
			func(m *pipeline.Model) { m.Policy.QueueOrder = pipeline.OrderPriority },
			func(m *pipeline.Model) { m.Machine.TurnaroundNS += 5e6 },
			func(m *pipeline.Model) { m.Memory.BaseBytes++ },
			func(m *pipeline.Model) {
				m.Partitions = slices.Clone(m.Partitions)
				m.Partitions[0].TurnaroundNS += 7e6
			},
		} {
			other := *m
			change(&other)
			alone, aloneErr := sim.New(&other)
			again, err := kept.New(&other)
			if (aloneErr == nil) != (err == nil) {
				t.Fatalf("with kept programs: %v, alone: %v", err, aloneErr)
			}
			if err != nil {
				continue
			}
			want, wantErr := alone.Run(sim.Draw{Seed: 3, Bootstrap: true})
			got, gotErr := again.Run(sim.Draw{Seed: 3, Bootstrap: true})
			if got != want || (gotErr == nil) != (wantErr == nil) {
				t.Errorf("with kept programs: %+v (%v), alone: %+v (%v)", got, gotErr, want, wantErr)
			}
		}
	})
}

func TestProgramsRefuseSettings(t *testing.T) {
	var kept sim.Programs
	m := pipeline.Example()
	if _, err := kept.New(m); err != nil {
		t.Fatal(err)
	}
	other := *m
	other.Policy.PartitionWorkers, other.Policy.ByteBudget = 0, pipeline.Unbounded
	const want = "compile model: partition_workers: 0 is outside 1..65536"
	if _, err := kept.New(&other); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
