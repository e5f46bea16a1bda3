package sim

import (
	"highwater/replay/pipeline"
)

// pacer is the PI controller in front of synthesis. It lets the first Target partitions go at a
// fixed distance, waits for the first proof to know how long one takes, and from then on lets one
// go
// every interval, longer or shorter as the queue in front of the GPU workers is above or below
// Target.
type pacer struct {
	on      bool
	conf    pipeline.Pacer
	workers float64
	wait    waitQueue

	armed      bool
	known      bool    // a proof has been seen
	boots      float64 // partitions still to be let go at the fixed distance
	bootNS     float64
	nextAt     float64 // not before
	waiting    float64 // smoothed queue in front of the GPU workers
	gpuNS      float64 // smoothed time on a GPU worker
	integral   float64
	dispatched int64
	completed  int64
}

func newPacer(m *pipeline.Model, n int) pacer {
	if m.Pacer.Target == 0 {
		return pacer{}
	}
	return pacer{
		on: true, conf: m.Pacer.WithDefaults(), wait: newWaitQueue(m.Policy.QueueOrder ==
			pipeline.OrderPriority, n),
		workers: float64(m.Policy.GPUWorkers * m.Policy.Devices),
	}
}

func (p *pacer) reset() {
	if !p.on {
		return
	}
	wait := p.wait
	wait.reset()
	*p = pacer{on: true, conf: p.conf, workers: p.workers, wait: wait}
	p.boots, p.bootNS = p.conf.Target, p.conf.BootstrapNS
}

// ask lets id go now, or makes it wait for its time.
func (p *pacer) ask(s *Simulator, id int32) bool {
	p.wait.push(id)
	return p.kick(s, id)
}

// kick lets the first in the queue go if its time has come, else sets the timer. It reports whether
// that was asking; another one is woken.
func (p *pacer) kick(s *Simulator, asking int32) bool {
	if p.wait.n == 0 || p.armed {
		return false
	}
	if p.boots <= 0 && !p.known {
		return false // the first proof wakes it
	}
	if p.nextAt > s.now {
		p.armed = true
		s.timer(p.nextAt, s.extra(extraPacer))
		return false
	}
	id := p.wait.pop()
	s.ents[id].state = stateRun
	p.dispatched++
	p.nextAt = s.now + p.interval(s)
	if id != asking {
		s.wake(id)
	}
	if p.wait.n > 0 {
		p.kick(s, -1)
	}
	return id == asking
}

// due is the timer.
func (p *pacer) due(s *Simulator) {
	p.armed = false
	p.kick(s, -1)
}

// interval is how long to wait after the partition that goes now.
func (p *pacer) interval(s *Simulator) float64 {
	c := &p.conf
	p.waiting += c.AlphaWaiting * (float64(s.senders.n+s.items.n) - p.waiting)
	if p.boots > 0 {
		p.boots--
		return p.bootNS
	}
	if p.waiting < 1 && p.dispatched <= p.completed {
		p.boots, p.bootNS = c.Target, max(c.RebootstrapNS, p.gpuNS/p.workers)
	}
	e := (c.Target - p.waiting) / c.Target
	p.integral = min(max(p.integral+e, c.IntegralMin), c.IntegralMax)
	rate := min(max(1+c.KP*e+c.KI*p.integral, c.RateMin), c.RateMax)
	return min(max(p.gpuNS/p.workers/rate, c.IntervalMinNS), c.IntervalMaxNS)
}

// proved notes how long a GPU worker took for a partition.
func (p *pacer) proved(s *Simulator, took float64) {
	p.completed++
	if !p.known {
		p.known, p.gpuNS = true, took
	} else {
		p.gpuNS += p.conf.AlphaGPU * (took - p.gpuNS)
	}
	p.kick(s, -1)
}
