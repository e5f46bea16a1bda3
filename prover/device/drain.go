package device

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"highwater/tracer"
	"highwater/tracer/trace"
)

const (
	// The ring is looked at this often while events come, and less often while none do.
	drainTick, drainIdle = time.Millisecond, 8 * time.Millisecond
	drainBatch           = 1024
)

// source is where a drain takes events from; *Context is one.
type source interface {
	ReadEvents(out []Event) (int, error)
	Ring() (Ring, error)
	Memory() (Memory, error)
}

// drain journals what happens on one device, until it is stopped.
type drain struct {
	*eventJournal
	from     source
	rec      *tracer.Recorder
	interval time.Duration // between two samples of the device's memory; 0: none
	metric   string
	events   [drainBatch]Event
	// pinnedAtStart is the page-locked memory that making the context took.
	pinnedAtStart int64

	stop, stopped chan struct{}
	closing       sync.Once
	loss          trace.Loss
	problem       error // the first
}

// startDrain begins to journal the events of a context that was just made. Without a recorder there
// is nothing to do: nil.
func startDrain(from source, rec *tracer.Recorder, device int32, name func(uint16) string,
	sampleHz float64,
) *drain {
	if rec == nil {
		return nil
	}
	d := &drain{eventJournal: newEventJournal(rec.Drain(), device, name), from: from, rec: rec,
		metric: "process.gpu.memory.usage." + decimal(int64(device)),
		stop:   make(chan struct{}), stopped: make(chan struct{})}
	d.loss = trace.Loss{Writer: "device/" + decimal(int64(device)), Reason: "event ring full"}
	if sampleHz > 0 {
		d.interval = time.Duration(float64(time.Second) / sampleHz)
		d.declareMetric()
	}
	d.empty()
	d.pinnedAtStart = d.pinned
	go d.run()
	return d
}

// declareMetric lists what the drain samples in the manifest.
func (d *drain) declareMetric() {
	err := d.rec.UpdateManifest(func(m *trace.Manifest) {
		if !slices.ContainsFunc(m.Metrics, func(x trace.Metric) bool { return x.Name == d.metric }) {
			m.Metrics = append(m.Metrics, trace.Metric{Name: d.metric, Unit: "By", Kind: "gauge"})
		}
	})
	d.note(err)
}

// run looks at the ring until stop: after each tick with events after another tick, else after
// twice the time, up to the idle one.
func (d *drain) run() {
	defer close(d.stopped)
	pause := drainTick
	timer := time.NewTimer(pause)
	defer timer.Stop()
	sampled := time.Now()
	for {
		select {
		case <-d.stop:
			return
		case now := <-timer.C:
			if d.interval > 0 && now.Sub(sampled) >= d.interval {
				sampled = now
				d.sample()
			}
		}
		if d.empty() > 0 {
			pause = drainTick
		} else {
			pause = min(2*pause, drainIdle)
		}
		timer.Reset(pause)
	}
}

// empty takes all that the ring holds and gives the number.
func (d *drain) empty() (total int) {
	for {
		n, err := d.from.ReadEvents(d.events[:])
		if err != nil {
			d.note(err)
			return total
		}
		d.take(d.events[:n])
		if total += n; n < len(d.events) {
			break
		}
	}
	if total > 0 {
		d.countLoss()
	}
	return total
}

// countLoss notes how many events the ring had no room for, and when.
func (d *drain) countLoss() {
	ring, err := d.from.Ring()
	if err != nil {
		d.note(err)
		return
	}
	if ring.Dropped == d.loss.Count {
		return
	}
	if d.loss.Count == 0 {
		d.loss.FromNS = d.rec.Now()
	}
	d.loss.Count, d.loss.ToNS = ring.Dropped, d.rec.Now()
}

// sample reads the device's memory as the driver reports it, less what was in use before us.
func (d *drain) sample() {
	m, err := d.from.Memory()
	if err != nil {
		d.note(err)
		return
	}
	if m.DriverKnown {
		d.rec.Sample(d.metric, float64(m.DriverUsed-m.DriverBase))
	}
}

func (d *drain) note(err error) {
	if d.problem == nil {
		d.problem = err
	}
}

// halt ends the goroutine and takes what is left in the ring: the context goes next.
func (d *drain) halt() {
	if d == nil {
		return
	}
	d.closing.Do(func() {
		close(d.stop)
		<-d.stopped
		d.empty()
		d.countLoss()
	})
}

// finish journals that the context gave everything back, and tells of losses.
func (d *drain) finish(at int64) error {
	if d == nil {
		return nil
	}
	d.close(at)
	if d.loss.Count > 0 {
		d.note(d.rec.UpdateManifest(func(m *trace.Manifest) { m.Loss = append(m.Loss, d.loss) }))
	}
	if d.problem != nil {
		return fmt.Errorf("journal device %d: %w", d.device, d.problem)
	}
	return nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// descending lists the keys of m, highest first.
func descending[V any](m map[uint64]V) []uint64 {
	keys := make([]uint64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	slices.Reverse(keys)
	return keys
}
