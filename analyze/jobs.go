package analyze

import (
	"encoding/json"
	"strings"

	"highwater/tracer/trace"
)

// jobFigures follows jobs from request to release.
type jobFigures struct {
	resources   map[string]bool // resources of kind job
	byID        map[int64]*jobState
	firstSubmit int64
	lastEnd     int64 // last release or cancel
	lastFreed   int64 // last free of a buffer that belongs to a job
}

type jobState struct{ requested, admitted, released, cancelled, failed bool }

func newJobFigures(m *trace.Manifest) jobFigures {
	return jobFigures{
		resources: jobResources(m), byID: map[int64]*jobState{},
		firstSubmit: trace.Null, lastEnd: trace.Null, lastFreed: trace.Null,
	}
}

// jobResources names the resources of kind job.
func jobResources(m *trace.Manifest) map[string]bool {
	names := map[string]bool{trace.ResourceJob: true}
	for _, r := range m.Resources {
		if r.Kind == trace.ResourceJob {
			names[r.Name] = true
		}
	}
	return names
}

func (f *jobFigures) job(id int64) *jobState {
	j := f.byID[id]
	if j == nil {
		j = &jobState{}
		f.byID[id] = j
	}
	return j
}

func (f *jobFigures) queue(e *trace.QueueEvent) {
	if !f.resources[e.Resource] || e.Job < 0 {
		return
	}
	j := f.job(e.Job)
	switch e.Event {
	case trace.EventRequest:
		j.requested = true
		if f.firstSubmit == trace.Null {
			f.firstSubmit = e.TimeNS
		}
	case trace.EventAcquire:
		j.admitted = true
	case trace.EventRelease:
		j.released = true
		f.lastEnd = e.TimeNS
	case trace.EventCancel:
		j.cancelled = true
		f.lastEnd = e.TimeNS
	}
}

// spanEnd learns from a job's root span that the job failed, or was given up after its admission.
func (f *jobFigures) spanEnd(s *trace.Span) {
	if s.Kind != trace.KindJob || s.Job < 0 || s.Status != "error" {
		return
	}
	if saysCancelled(s.Attributes) {
		f.job(s.Job).cancelled = true
	} else {
		f.job(s.Job).failed = true
	}
}

func saysCancelled(attributes string) bool {
	var set map[string]any
	if !strings.Contains(attributes, trace.AttrJobCancelled) ||
		json.Unmarshal([]byte(attributes), &set) != nil {
		return false
	}
	return set[trace.AttrJobCancelled] == true
}

func (f *jobFigures) lastFree(timeNS int64) { f.lastFreed = timeNS }

func (f *jobFigures) count() Jobs {
	var c Jobs
	for _, j := range f.byID {
		if !j.requested {
			continue
		}
		c.Submitted++
		switch {
		case j.cancelled:
			c.Cancelled++
		case !j.released:
			c.Open++
		case j.failed:
			c.Failed++
		default:
			c.Finished++
		}
	}
	return c
}

// makespan is first submit to last free of a job's buffer, nil while a job is open. Where nothing
// was freed it is nil unless a job finished: its buffers were not recorded then, and the last job's
// end stands for its last free.
func (f *jobFigures) makespan() *int64 {
	c := f.count()
	if c.Submitted == 0 || c.Open > 0 || c.Submitted == c.Cancelled {
		return nil
	}
	end := f.lastFreed
	if end == trace.Null {
		if c.Finished == 0 {
			return nil
		}
		end = f.lastEnd
	}
	return ptr(end - f.firstSubmit)
}
