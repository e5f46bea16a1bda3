package sim

// waitQueue holds entities that wait, served by arrival or, by priority, lowest id first (ids
// follow job and partition). It keeps its memory when it empties.
type waitQueue struct {
	priority bool
	ids      []int32 // ring from head where by arrival, binary heap where by priority
	head     int
	n        int
}

func newWaitQueue(priority bool, capacity int) waitQueue {
	size := 1
	for size < capacity {
		size <<= 1
	}
	return waitQueue{priority: priority, ids: make([]int32, size)}
}

func (q *waitQueue) reset() { q.head, q.n = 0, 0 }

func (q *waitQueue) first() int32 { return q.ids[q.head] }

func (q *waitQueue) push(id int32) {
	if q.priority {
		q.up(id)
	} else {
		q.ids[(q.head+q.n)&(len(q.ids)-1)] = id
	}
	q.n++
}

func (q *waitQueue) pop() int32 {
	id := q.ids[q.head]
	q.n--
	if q.priority {
		q.down()
	} else {
		q.head = (q.head + 1) & (len(q.ids) - 1)
	}
	return id
}

// at is the i-th in order of arrival; not for queues by priority.
func (q *waitQueue) at(i int) int32 { return q.ids[(q.head+i)&(len(q.ids)-1)] }

// dropLast takes back the latest push; not for queues by priority.
func (q *waitQueue) dropLast() { q.n-- }

// remove takes id out of its place; not for queues by priority.
func (q *waitQueue) remove(id int32) {
	mask, found := len(q.ids)-1, false
	for i := range q.n {
		at := (q.head + i) & mask
		found = found || q.ids[at] == id
		if found {
			q.ids[at] = q.ids[(at+1)&mask]
		}
	}
	if found {
		q.n--
	}
}

func (q *waitQueue) up(id int32) {
	i := q.n
	for i > 0 {
		parent := (i - 1) >> 1
		if q.ids[parent] <= id {
			break
		}
		q.ids[i] = q.ids[parent]
		i = parent
	}
	q.ids[i] = id
}

func (q *waitQueue) down() {
	id, i := q.ids[q.n], 0
	for {
		child := i<<1 + 1
		if child >= q.n {
			break
		}
		if child+1 < q.n && q.ids[child+1] < q.ids[child] {
			child++
		}
		if q.ids[child] >= id {
			break
		}
		q.ids[i] = q.ids[child]
		i = child
	}
	q.ids[i] = id
}

// gate is a counted resource that is requested, held and released: job slots, permits, the byte
// budget, device locks, finalisers. A request that does not fit holds back those after it.
type gate struct {
	capacity int64 // negative: unbounded
	level    int64
	wait     waitQueue
	maxWait  int
	unfair   bool  // later requests may be served first
	race     bool  // a release wakes all who wait, and whoever fits is served
	turn     int64 // grants so far, of unfair ones
}

func (g *gate) reset() {
	g.level, g.maxWait, g.turn = 0, 0, 0
	g.wait.reset()
}

func (g *gate) fits(amount int64) bool {
	return g.capacity < 0 || g.level+amount <= g.capacity
}
