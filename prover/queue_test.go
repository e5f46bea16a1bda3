package prover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"highwater/tracer"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// queueModel follows the operations of a resource and notes the first that a true resource could
// not have made.
type queueModel struct {
	mu       sync.Mutex
	capacity int64
	order    order
	level    int64
	waiting  []tracer.QueueOp // in order of arrival
	items    []tracer.QueueOp // of a channel
	counts   map[string]int
	err      error
}

func newModel(capacity int64, o order) *queueModel {
	return &queueModel{capacity: capacity, order: o, counts: map[string]int{}}
}

// Event checks op. It is called inside the resource's critical section.
func (m *queueModel) Event(op tracer.QueueOp) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[op.Event]++
	err := m.apply(op)
	if err == nil && (op.LevelAfter != m.level || op.WaitingAfter != int64(len(m.waiting))) {
		err = fmt.Errorf("level %d waiting %d, want %d and %d", op.LevelAfter, op.WaitingAfter, m.level, len(m.waiting))
	}
	bound := max(m.capacity, 1) // a rendezvous holds an item for the moment of the handing over
	if err == nil && m.capacity != setting.Unbounded && m.level > bound {
		err = fmt.Errorf("level %d is above capacity %d", m.level, m.capacity)
	}
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("%s of job %d partition %d: %w", op.Event, op.Owner.Job, op.Owner.Partition, err)
	}
}

func (m *queueModel) apply(op tracer.QueueOp) (err error) {
	switch op.Event {
	case trace.EventRequest, trace.EventSend:
		m.waiting = append(m.waiting, op)
	case trace.EventAcquire, trace.EventSent:
		m.waiting, err = m.take(m.waiting, op)
		m.level += op.Amount
		m.items = append(m.items, op)
	case trace.EventRecv:
		m.items, err = m.take(m.items, op)
		m.level -= op.Amount
	case trace.EventRelease:
		m.level -= op.Amount
	case trace.EventCancel:
		m.waiting, err = remove(m.waiting, op)
	default:
		err = errors.New("not an event of a queue")
	}
	if m.level < 0 {
		err = errors.New("level below zero")
	}
	return err
}

// take removes op from list and checks that it was next in the model's order.
func (m *queueModel) take(list []tracer.QueueOp, op tracer.QueueOp) ([]tracer.QueueOp, error) {
	if len(list) == 0 {
		return list, errors.New("nobody was waiting")
	}
	next := list[0]
	for _, w := range list[1:] {
		if m.order == orderPriority && before(w.Owner, next.Owner) {
			next = w
		}
	}
	if !sameOwner(next, op) {
		return list, fmt.Errorf("out of order: job %d partition %d was next", next.Owner.Job, next.Owner.Partition)
	}
	return remove(list, op)
}

func before(a, b tracer.Owner) bool {
	return a.Job < b.Job || a.Job == b.Job && a.Partition < b.Partition
}

func sameOwner(a, b tracer.QueueOp) bool {
	return a.Owner.Job == b.Owner.Job && a.Owner.Partition == b.Owner.Partition
}

func remove(list []tracer.QueueOp, op tracer.QueueOp) ([]tracer.QueueOp, error) {
	for i, w := range list {
		if sameOwner(w, op) {
			return append(list[:i:i], list[i+1:]...), nil
		}
	}
	return list, errors.New("it was not waiting")
}

// atRest fails the test if an operation was impossible or the resource is not empty.
func (m *queueModel) atRest(t interface{ Fatalf(string, ...any) }) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		t.Fatalf("impossible operation: %v", m.err)
	}
	if m.level != 0 || len(m.waiting) != 0 {
		t.Fatalf("at the end level %d, waiting %d, want 0 and 0", m.level, len(m.waiting))
	}
}

func ownerOf(job, partition int) tracer.Owner {
	return tracer.Owner{Job: int32(job), Partition: int32(partition), Worker: -1}
}

func drawOrder(t *rapid.T) order {
	return rapid.SampledFrom([]order{orderFIFO, orderPriority}).Draw(t, "order")
}

// TestSemaphoreSteps drives a semaphore one operation at a time and checks each grant against the
// model.
func TestSemaphoreSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.SampledFrom([]int64{setting.Unbounded, 1, 2, 5, 100}).Draw(t, "capacity")
		o := drawOrder(t)
		model := newModel(capacity, o)
		s := newSemaphore(semaphoreSpec{log: model, capacity: capacity, order: o, numbered: true})
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		var live []*ticket
		pick := func(t *rapid.T) int {
			if len(live) == 0 {
				t.Skip("nothing live")
			}
			return rapid.IntRange(0, len(live)-1).Draw(t, "ticket")
		}
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) {
				amount := rapid.Int64Range(1, 6).Draw(t, "amount")
				if !s.fits(amount) {
					t.Skip("never fits")
				}
				live = append(live, s.request(ownerOf(rapid.IntRange(0, 3).Draw(t, "job"), next), amount))
				next++
			},
			"release or cancel": func(t *rapid.T) {
				i := pick(t)
				if err := s.wait(cancelled, live[i]); err == nil {
					s.release(live[i])
					s.release(live[i]) // a second one does nothing
				}
				live = append(live[:i], live[i+1:]...)
			},
			"release part": func(t *rapid.T) {
				i := pick(t)
				if !live[i].isGranted() || live[i].amount < 2 {
					t.Skip("no part to give back")
				}
				s.releasePart(live[i], live[i].amount-1)
			},
			"": func(t *rapid.T) { checkSteps(t, s, model, live) },
		})
		for _, tk := range live {
			if s.wait(cancelled, tk) == nil {
				s.release(tk)
			}
		}
		model.atRest(t)
	})
}

// checkSteps checks what must hold between any two operations: no error in the log, the first
// waiter does not fit, and worker numbers are the lowest possible and used once.
func checkSteps(t *rapid.T, s *semaphore, model *queueModel, live []*ticket) {
	if model.err != nil {
		t.Fatal(model.err)
	}
	if w := s.waiters.first(); w != nil && (s.capacity == setting.Unbounded || s.held+w.amount <= s.capacity) {
		t.Fatalf("a waiter for %d waits although %d of %d are held", w.amount, s.held, s.capacity)
	}
	used := map[int32]bool{}
	for _, tk := range live {
		if !tk.isGranted() {
			continue
		}
		if used[tk.slot] {
			t.Fatalf("worker number %d is used twice", tk.slot)
		}
		used[tk.slot] = true
	}
}

// TestSemaphoreConcurrent has many goroutines ask, hold, give up and give back at once.
func TestSemaphoreConcurrent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.SampledFrom([]int64{setting.Unbounded, 1, 3, 7}).Draw(t, "capacity")
		o := drawOrder(t)
		model := newModel(capacity, o)
		s := newSemaphore(semaphoreSpec{log: model, capacity: capacity, order: o})
		seed := rapid.Uint64().Draw(t, "seed")
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() { useSemaphore(s, g, rand.New(rand.NewPCG(seed, uint64(g)))) })
		}
		wg.Wait()
		model.atRest(t)
	})
}

func useSemaphore(s *semaphore, g int, rng *rand.Rand) {
	for i := range 10 {
		amount := 1 + rng.Int64N(4)
		if !s.fits(amount) {
			amount = 1
		}
		ctx, cancel := context.WithCancel(context.Background())
		if rng.IntN(3) == 0 {
			go cancel()
		}
		tk, err := s.acquire(ctx, ownerOf(g, i), amount)
		if err == nil && amount > 1 {
			s.releasePart(tk, 1)
		}
		if err == nil {
			s.release(tk)
		}
		cancel()
	}
}

// TestChannelConcurrent sends from many goroutines, some of which give up, to several receivers.
func TestChannelConcurrent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.SampledFrom([]int64{setting.Unbounded, 0, 1, 2, 5}).Draw(t, "capacity")
		o := drawOrder(t)
		receivers := rapid.IntRange(1, 3).Draw(t, "receivers")
		giveUp := rapid.Bool().Draw(t, "some give up")
		seed := rapid.Uint64().Draw(t, "seed")
		model := newModel(capacity, o)
		c := newChannel(model, capacity, o)
		got := make([][]*partition, receivers)
		var receiving, sending sync.WaitGroup
		for r := range receivers {
			receiving.Go(func() { got[r] = receiveAll(c, r) })
		}
		accepted := make([]int, 6)
		for g := range 6 {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			sending.Go(func() { accepted[g] = sendSome(c, g, rng, giveUp) })
		}
		sending.Wait()
		c.close()
		receiving.Wait()
		model.atRest(t)
		checkDelivery(t, got, accepted)
	})
}

func receiveAll(c *channel, worker int) (all []*partition) {
	owner := tracer.NoOwner
	owner.Worker = int32(worker)
	for {
		p, ok := c.recv(owner)
		if !ok {
			return all
		}
		all = append(all, p)
	}
}

func sendSome(c *channel, g int, rng *rand.Rand, giveUp bool) (accepted int) {
	for i := range 8 {
		ctx, cancel := context.WithCancel(context.Background())
		if giveUp && rng.IntN(2) == 0 {
			go cancel()
		}
		if c.send(ctx, ownerOf(g, i), &partition{index: g*100 + i}) == nil {
			accepted++
		}
		cancel()
	}
	return accepted
}

// checkDelivery checks that what was accepted arrived, each once.
func checkDelivery(t *rapid.T, got [][]*partition, accepted []int) {
	seen, want := map[int]bool{}, 0
	for _, n := range accepted {
		want += n
	}
	for _, list := range got {
		for _, p := range list {
			if seen[p.index] {
				t.Fatalf("item %d arrived twice", p.index)
			}
			seen[p.index] = true
		}
	}
	if len(seen) != want {
		t.Fatalf("%d items arrived, %d were accepted", len(seen), want)
	}
}

// TestRendezvous checks that a channel of capacity 0 accepts nothing before somebody receives.
func TestRendezvous(t *testing.T) {
	model := newModel(0, orderFIFO)
	c := newChannel(model, 0, orderFIFO)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.send(ctx, ownerOf(0, 0), &partition{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("send without a receiver: %v, want it to wait until it is cancelled", err)
	}
	if model.counts[trace.EventSent] != 0 || model.counts[trace.EventCancel] != 1 {
		t.Fatalf("operations %v, want one cancel and nothing sent", model.counts)
	}
	done := make(chan *partition)
	go func() {
		p, _ := c.recv(tracer.NoOwner)
		done <- p
	}()
	want := &partition{index: 7}
	if err := c.send(context.Background(), ownerOf(0, 7), want); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != want {
		t.Fatalf("received %v, want %v", got, want)
	}
	model.atRest(t)
}

// TestBudgetHeadOfLine checks that a large request is not starved by small ones that come after it.
func TestBudgetHeadOfLine(t *testing.T) {
	model := newModel(10, orderFIFO)
	s := newSemaphore(semaphoreSpec{log: model, capacity: 10, order: orderFIFO})
	first := s.request(ownerOf(0, 0), 6)
	large := s.request(ownerOf(0, 1), 8)
	small := s.request(ownerOf(0, 2), 2)
	if !first.isGranted() || large.isGranted() || small.isGranted() {
		t.Fatal("want the first granted, the large one waiting, and the small one behind it")
	}
	s.releasePart(first, 4)
	if !large.isGranted() || small.isGranted() {
		t.Fatal("want the large one granted when 8 are free, the small one still waiting")
	}
	s.release(first)
	if !small.isGranted() {
		t.Fatal("want the small one granted when 2 are free")
	}
	s.release(large)
	s.release(small)
	model.atRest(t)
}
