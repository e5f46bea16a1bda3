package corpus

import (
	"fmt"
	"math/rand/v2"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// Kind is one fault, or a way of being healthy.
type Kind struct {
	Name string
	// Analyzer must find something in a trace of this kind; "" for a clean kind, in which none may.
	Analyzer string
	Doc      string

	draw func(p *plan, m *meters) // what is different from a healthy run
	edit func(d *trace.Data, rng *rand.Rand)
}

// Clean says whether the kind has no fault.
func (k *Kind) Clean() bool { return k.Analyzer == "" }

// Make gives the trace of one seed. The error is the simulator's: a kind that deadlocks is a fault
// of this package.
func (k *Kind) Make(seed uint64) (*trace.Data, error) {
	rng := rand.New(rand.NewPCG(seed, hash(k.Name)))
	p, m := basePlan(rng), baseMeters(rng)
	if k.draw != nil {
		k.draw(p, m)
	}
	d, _, err := sim.Record(p.model(k.Name), sim.Draw{Seed: seed})
	if err != nil {
		return nil, fmt.Errorf("make trace of kind %s, seed %d: %w", k.Name, seed, err)
	}
	widen(d)
	d.Manifest.RunGroup = k.Name
	if k.edit != nil {
		k.edit(d, rng)
	}
	retime(d)
	m.attach(d)
	return d, nil
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// Kinds lists every kind, faults first.
func Kinds() []Kind { return append(faults(), clean()...) }

func faults() []Kind {
	return []Kind{
		{
			Name: "queue-pileup", Analyzer: "queue-pileup",
			Doc: "permits released at the end of synthesis, rho 1.3 to 2",
			draw: func(p *plan, _ *meters) {
				p.release, p.capacity = pipeline.ReleaseSynthEnd, 1
				p.jobsInFlight = pipeline.Unbounded
				p.rho(1.3 + 0.7*p.rng.Float64())
			},
		},
		{
			Name: "late-free", Analyzer: "late-free",
			Doc: "a, b, c kept through a long b_g2",
			draw: func(p *plan, _ *meters) {
				p.earlyFree = false
				p.bg2 = (0.5 + p.rng.Float64()) * p.gpu
			},
		},
		{
			Name: "ledger-audit", Analyzer: "ledger-audit",
			Doc:  "a buffer freed twice, a level below zero, or frees that are missing",
			edit: breakLedger,
		},
		{
			Name: "page-fault-storm", Analyzer: "page-fault-storm",
			Doc: "every fourth job touches fresh memory in 4 KiB pages, and its synthesis is longer " +
				"by 0.8 to 1.4 times what the faults cost",
			draw: drawStorm,
		},
		{
			Name: "large-allocation", Analyzer: "large-allocation",
			Doc: "eight partitions or more start at once, and no fault counter was sampled",
			draw: func(p *plan, m *meters) {
				m.counters = false
				p.partitions = 8 + p.rng.Int64N(6)
				p.permits, p.startSpreadFactor, p.jobs = p.partitions, 0, 4
				p.jobsInFlight, p.key = 1, 1<<30
				p.rho(0.8 + 0.15*p.rng.Float64())
			},
		},
		{
			Name: "leak", Analyzer: "leak",
			Doc:  "one class of some partitions is never freed",
			draw: func(p *plan, _ *meters) { p.jobs = 12 + p.rng.Int64N(10) },
			edit: forgetFrees,
		},
		{
			Name: "allocator-retention", Analyzer: "allocator-retention",
			Doc: "RSS keeps 30 to 90 % of its high water when the work is over",
			draw: func(p *plan, m *meters) {
				p.key = 1 << 30
				m.retain, m.idle = 0.45+0.45*p.rng.Float64(), 60
			},
		},
		{
			Name: "oversubscription", Analyzer: "oversubscription",
			Doc:  "stages share a third to a half of the CPUs that they ask for",
			draw: drawOversubscription,
		},
		{
			Name: "gpu-starvation", Analyzer: "gpu-starvation",
			Doc:  "rho 0.2 to 0.45",
			draw: func(p *plan, _ *meters) { p.rho(0.2 + 0.25*p.rng.Float64()) },
		},
		{
			Name: "lock-convoy", Analyzer: "lock-convoy",
			Doc: "four to six GPU workers behind one lock, rho above 1",
			draw: func(p *plan, _ *meters) {
				p.gpus, p.jobsInFlight = 4+p.rng.Int64N(3), pipeline.Unbounded
				p.permits = 4 + p.rng.Int64N(3)
				p.rho(1.3 + 0.5*p.rng.Float64())
			},
		},
		{
			Name: "pin-thrash", Analyzer: "pin-thrash",
			Doc:  "each partition page-locks its upload buffer anew",
			edit: func(d *trace.Data, rng *rand.Rand) { addPinning(d, rng.IntN(2) == 0) },
		},
		{
			Name: "transfer-stall", Analyzer: "transfer-stall",
			Doc: "uploads at 4 to 8.5 GB/s take 15 to 60 % of prove_start",
			edit: func(d *trace.Data, rng *rand.Rand) {
				addCopies(d, (4+4.5*rng.Float64())*1e9, 0.15+0.45*rng.Float64())
			},
		},
		{
			Name: "thundering-herd", Analyzer: "thundering-herd",
			Doc:  "job after job, all partitions in step",
			draw: drawHerd,
		},
		{
			Name: "hidden-limit", Analyzer: "hidden-limit",
			Doc:  "a cgroup limit just above the peak, or OOM events at one",
			draw: drawHiddenLimit,
		},
		{
			Name: "budget-not-a-bound", Analyzer: "budget-not-a-bound",
			Doc: "the budget reserves 55 to 80 % of what a partition takes",
			draw: func(p *plan, _ *meters) {
				p.settled = int64(float64(4*p.vector) * (0.55 + 0.25*p.rng.Float64()))
				p.permits, p.jobsInFlight = 4, pipeline.Unbounded
				p.rho(1.2)
				p.budget = pipeline.Bound(5 * p.settled)
			},
		},
		{
			Name: "measurement-artefact", Analyzer: "measurement-artefact",
			Doc:  "RSS read after the run only, or once in a synthesis time or two",
			draw: drawArtefact,
		},
	}
}

func drawStorm(p *plan, m *meters) {
	p.jobs, p.permits, p.partitions = 12, 4+p.rng.Int64N(3), 4+p.rng.Int64N(3)
	p.vector = (1536 + p.rng.Int64N(1024)) << 20
	p.synthesis = 10 + 5*p.rng.Float64()
	faultsS := float64(4*p.vector) / smallPage * m.faultNS / 1e9 // a, b, c and the assignment
	p.slowBy = 1 + (0.8+0.6*p.rng.Float64())*faultsS/p.synthesis
	fresh := func(job int64) bool { return job%4 == 3 }
	p.slowJobs, m.smallPages = fresh, fresh
	p.jobsInFlight, p.synthesisThreads = 1, 1
	p.rho(0.8)
}

func drawOversubscription(p *plan, m *meters) {
	p.permits, p.partitions, p.jobs = 5+p.rng.Int64N(3), 8, 8
	p.jobsInFlight, p.startSpreadFactor = 1, 2
	p.synthesisThreads = 4
	p.rho(0.9)
	demand := float64(p.permits)*p.synthesisThreads + 5
	p.cpus = demand * (0.33 + 0.17*p.rng.Float64())
	m.cpus = int(p.cpus)
}

func drawHerd(p *plan, _ *meters) {
	p.partitions = 6 + p.rng.Int64N(6)
	p.permits, p.jobsInFlight, p.startSpreadFactor = p.partitions, 1, 0
	p.jobs, p.capacity, p.cv = 6+p.rng.Int64N(4), pipeline.Bound(p.partitions), 0.015
	p.rho(0.4 + 0.3*p.rng.Float64())
}

func drawHiddenLimit(p *plan, m *meters) {
	// About what is in flight at the peak: permits in synthesis, one sending, GPU workers, and
	// what b_g2 keeps.
	inFlight := p.permits + int64(p.capacity) + p.gpus
	m.limit = p.key + inFlight*4*p.vector
	if p.rng.IntN(2) == 0 {
		m.ooms = float64(1 + p.rng.IntN(3))
	} else {
		m.throttled = 0.1 + 0.3*p.rng.Float64()
	}
}

func drawArtefact(p *plan, m *meters) {
	if p.rng.IntN(2) == 0 {
		m.onlyAfter = true
		return
	}
	m.hz = 1 / (p.synthesis * (2 + 2*p.rng.Float64()))
}

func clean() []Kind {
	pooled := func(d *trace.Data, _ *rand.Rand) {
		addCopies(d, 55e9, 0.05)
		addPool(d)
	}
	return []Kind{
		{Name: "clean-rho-below-1", Doc: "a healthy pipeline with a pinned pool", edit: pooled},
		{
			Name: "clean-rho-above-1", edit: pooled,
			Doc: "rho 1.1 to 1.5, permits held until the send is accepted",
			draw: func(p *plan, _ *meters) {
				p.jobsInFlight = pipeline.Unbounded
				p.rho(1.1 + 0.4*p.rng.Float64())
			},
		},
		{
			Name: "clean-budget", edit: pooled,
			Doc: "a byte budget that reserves what a partition takes, under a distant cgroup limit",
			draw: func(p *plan, m *meters) {
				p.budget = pipeline.Bound(4 * p.vector * (p.permits + p.gpus + 2))
				m.limit = 512 << 30
				p.rho(0.9)
			},
		},
		{
			Name: "clean-warm-up", edit: func(d *trace.Data, rng *rand.Rand) {
				pooled(d, rng)
				addCache(d, 4)
			},
			Doc: "a cache that fills in the first jobs and then stays",
			draw: func(p *plan, _ *meters) {
				p.jobs = 16
			},
		},
		{
			Name: "clean-wide", edit: pooled,
			Doc: "eight to twelve partitions that start at once, services that spread by 15 %",
			draw: func(p *plan, _ *meters) {
				p.permits, p.startSpreadFactor, p.cv = 8+p.rng.Int64N(5), 0, 0.15
				p.partitions, p.jobsInFlight = 6, pipeline.Unbounded
				p.rho(0.85 + 0.3*p.rng.Float64())
			},
		},
		{
			Name: "clean-small-pages", edit: pooled,
			Doc: "every job touches 4 KiB pages, none slower than another",
			draw: func(p *plan, m *meters) {
				m.smallPages = func(int64) bool { return true }
			},
		},
	}
}
