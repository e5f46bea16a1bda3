package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"highwater/replay"
	"highwater/replay/pipeline"
)

// NearBestRatio is how much longer than the shortest a proof interval may be for the cheapest
// setting.
const NearBestRatio = 0.02

// SameRatio is how far apart proof intervals are that count as equal: the medians of draws are no
// nearer the truth than that.
const SameRatio = 0.005

// Options are what to plan. Limit and Axes are required.
type Options struct {
	Axes []Axis
	Set  map[string]string // settings the same in all combinations
	// an optimisation to plan with; see replay.Question.Change
	Change func(*pipeline.Model) error
	Limit  int64 // bytes that the program may have
	// Jobs is how many jobs each combination runs; 0 is as many as were recorded
	Jobs int64
	// DurationNS is how long each combination runs at least, in place of Jobs; 0 is no such wish
	DurationNS int64
	Draws      int    // a combination; 0 means replay.DefaultDraws
	Seed       uint64 // same seed, same plan
	// called after each combination, never at the same time as itself; may be nil
	Progress func(done, total int)
}

// Validate reports what is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Limit <= 0 {
		bad("limit: %d bytes is not above 0", o.Limit)
	}
	if len(o.Axes) == 0 {
		bad("vary: no setting to vary")
	}
	if o.Jobs < 0 || o.DurationNS < 0 {
		bad("jobs %d, duration %d ns: below 0", o.Jobs, o.DurationNS)
	}
	if o.Jobs > 0 && o.DurationNS > 0 {
		bad("jobs and duration: give one of them")
	}
	if o.Draws < 0 || o.Draws > replay.MaxDraws {
		bad("draws: %d is outside 0..%d", o.Draws, replay.MaxDraws)
	}
	for _, a := range o.Axes {
		if _, ok := o.Set[a.Name]; ok {
			bad("%s is both set and varied", a.Name)
		}
		if a.Name == "jobs" && (o.Jobs > 0 || o.DurationNS > 0) {
			bad("jobs is varied, and also given as a number or a duration")
		}
	}
	return errors.Join(errs...)
}

// Run asks p about every combination. The error is of the options, of their change, or of a
// reading; a combination that the model refuses is a row of the result.
func Run(ctx context.Context, p *replay.Predictor, opts Options) (*Result, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	model := p.Model()
	grid, err := Grid(opts.Axes, func(name string) (string, bool) {
		if text, ok := opts.Set[name]; ok {
			return text, true
		}
		return model.Policy.Text(name)
	})
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if opts.Change != nil {
		if p, err = p.Changed(opts.Change); err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
	}
	s := &sweep{predictor: p, opts: opts, rows: make([]Row, len(grid)), grid: grid}
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	r := &Result{LimitBytes: opts.Limit, Rows: s.rows, axes: opts.Axes}
	for _, a := range opts.Axes {
		r.Axes = append(r.Axes, a.Name)
	}
	if err := s.choose(ctx, r); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return r, nil
}

// sweep is one plan under way. Combinations are shared out; each is simulated by one goroutine.
type sweep struct {
	predictor *replay.Predictor
	opts      Options
	grid      []map[string]string
	rows      []Row

	mu   sync.Mutex
	next int
	done int
	err  error
}

func (s *sweep) run(ctx context.Context) error {
	var group sync.WaitGroup
	for range min(len(s.grid), runtime.GOMAXPROCS(0)) {
		group.Go(func() { s.work(ctx) })
	}
	group.Wait()
	if s.err != nil {
		return s.err
	}
	return ctx.Err()
}

func (s *sweep) work(ctx context.Context) {
	for ctx.Err() == nil {
		i, ok := s.take()
		if !ok {
			return
		}
		row, err := s.row(ctx, s.grid[i])
		s.finish(i, row, err)
	}
}

func (s *sweep) take() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= len(s.grid) || s.err != nil {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

func (s *sweep) finish(i int, row Row, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[i] = row
	s.done++
	if err != nil && s.err == nil {
		s.err = err
	}
	if err == nil && s.opts.Progress != nil {
		s.opts.Progress(s.done, len(s.grid))
	}
}

// question is what to ask about a combination.
func (s *sweep) question(set map[string]string, jobs int64) replay.Question {
	all := maps.Clone(s.opts.Set)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, set)
	if jobs > 0 {
		all["jobs"] = fmt.Sprint(jobs)
	}
	return replay.Question{
		Set: all, Draws: s.opts.Draws, Seed: s.opts.Seed, MemoryLimit: s.opts.Limit, Workers: 1,
	}
}

// row predicts one combination. Only an interruption is an error; a refusal is in the row.
func (s *sweep) row(ctx context.Context, set map[string]string) (Row, error) {
	jobs := s.opts.Jobs
	if s.opts.DurationNS > 0 {
		var err error
		if jobs, err = s.jobsFor(ctx, set); err != nil {
			return s.refusal(ctx, set, err)
		}
	}
	p, err := s.predictor.Predict(ctx, s.question(set, jobs))
	if err != nil {
		return s.refusal(ctx, set, err)
	}
	return rowOf(set, p), nil
}

func (s *sweep) refusal(ctx context.Context, set map[string]string, err error) (Row, error) {
	if ctx.Err() != nil {
		return Row{}, ctx.Err()
	}
	return Row{Set: set, Verdict: Refused, Reasons: []string{err.Error()}}, nil
}

// durationDraws are enough to tell how many jobs a duration takes.
const durationDraws = 8

// jobsFor is how many jobs last as long as the duration asked for. Ramp-up and drain make a short
// run's interval long, so that the first answer is corrected once.
func (s *sweep) jobsFor(ctx context.Context, set map[string]string) (int64, error) {
	jobs := int64(0)
	for range 2 {
		q := s.question(set, jobs)
		q.Draws, q.MemoryLimit = durationDraws, 0
		p, err := s.predictor.Predict(ctx, q)
		if err != nil {
			return 0, err
		}
		if p.ProofIntervalNS == nil || *p.ProofIntervalNS <= 0 {
			return 0, errors.New("no proof interval is predicted, so a duration tells no number of jobs")
		}
		n := math.Ceil(float64(s.opts.DurationNS) / float64(*p.ProofIntervalNS))
		if n*float64(s.partitions(q.Set)) > maxPartitions {
			return 0, fmt.Errorf("the duration takes %.0f jobs: more than the %d partitions that one "+
				"replay takes; give a shorter --duration", n, maxPartitions)
		}
		jobs = max(int64(n), 1)
	}
	return jobs, nil
}

// maxPartitions bounds the work that a duration can ask for.
const maxPartitions = pipeline.MaxPartitions / 8

func (s *sweep) partitions(set map[string]string) int64 {
	m := s.predictor.Model()
	if text, ok := set["partitions"]; ok {
		_ = m.Policy.SetText("partitions", text) // a bad text is found where it is replayed
	}
	return max(m.Policy.Partitions, 1)
}

// choose picks the answers among the rows and looks closer at them.
func (s *sweep) choose(ctx context.Context, r *Result) error {
	r.pick()
	for _, i := range r.chosen() {
		row := &r.Rows[i]
		q := s.question(row.Set, row.Jobs)
		q.Growth, q.Workers = true, 0
		p, err := s.predictor.Predict(ctx, q)
		if err != nil {
			return err
		}
		row.Growth = p.Growth
	}
	r.explain()
	return nil
}

// chosen are the rows that the answer names, each once, without refused ones.
func (r *Result) chosen() []int {
	var out []int
	for _, i := range []*int{r.Recommended, r.Cheapest, r.NextUp} {
		if i != nil && r.Rows[*i].Verdict != Refused && !slices.Contains(out, *i) {
			out = append(out, *i)
		}
	}
	return out
}
