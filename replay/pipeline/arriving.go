package pipeline

// openGapNS is how far apart recorded jobs must arrive in the mean for their times to mean anything:
// what submits all at once takes some microseconds for each.
const openGapNS = 1e6

// WithJobs is a copy of m that runs n jobs. Jobs beyond those recorded arrive as the recorded ones
// did, after them.
func (m *Model) WithJobs(n int64) *Model {
	out := *m
	out.Policy.Jobs = n
	out.Jobs = out.arriving()
	return &out
}

// arriving is the pool of jobs, as long as the policy has jobs where they were recorded to arrive over
// time. A recording's first job arrives at 0: those of several recordings follow each other, and so do
// further rounds of all, each after the last arrival of the one before and one mean distance.
func (m *Model) arriving() []Job {
	n := len(m.Jobs)
	if m.Arrivals.Kind != ArriveAtOnce || !arriveOverTime(m.Jobs) {
		return m.Jobs
	}
	out := make([]Job, 0, max(n, int(m.Policy.Jobs)))
	shift, last, count := 0.0, 0.0, 0.0 // before the round under way; its last arrival, its jobs
	for i := range cap(out) {
		j := m.Jobs[i%n]
		if again := i > 0 && (i%n == 0 || j.SubmitNS == 0); again && last > 0 {
			shift += last + last/max(count-1, 1)
			last, count = 0, 0
		}
		last, count = max(last, j.SubmitNS), count+1
		j.SubmitNS += shift
		out = append(out, j)
	}
	return out
}

// arriveOverTime says whether jobs arrive apart, or all at once.
func arriveOverTime(jobs []Job) bool {
	last := 0.0
	for i := range jobs {
		last = max(last, jobs[i].SubmitNS)
	}
	return last > openGapNS*float64(len(jobs))
}
