package memory

import "iter"

// A cursor's goroutine reads this many rows at a time, and at most this many batches ahead: enough
// to keep two CPUs busy, some MiB in all.
const (
	batchRows    = 512
	batchesAhead = 4
)

// cursor is one table read step by step, its next row held. A goroutine decodes ahead of it.
type cursor[T any] struct {
	row *T // nil at the end

	rows  []T // the batch under way
	at    int
	after error // what comes after it

	full chan batch[T]
	free chan []T
	quit chan struct{}
	done chan struct{}
}

// batch is rows in order, and the error that came after them.
type batch[T any] struct {
	rows []T
	err  error
}

func openCursor[T any](rows iter.Seq2[*T, error], err *error) *cursor[T] {
	c := &cursor[T]{
		full: make(chan batch[T], batchesAhead), free: make(chan []T, batchesAhead+2),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	go c.produce(rows)
	c.advance(err)
	return c
}

// produce copies rows into batches until the end, an error, or the cursor's stop.
func (c *cursor[T]) produce(rows iter.Seq2[*T, error]) {
	defer close(c.done)
	defer close(c.full)
	b := batch[T]{rows: make([]T, 0, batchRows)}
	for row, err := range rows {
		if err != nil {
			b.err = err
			break
		}
		if b.rows = append(b.rows, *row); len(b.rows) < batchRows {
			continue
		}
		if !c.send(b) {
			return
		}
		b = batch[T]{rows: c.empty()}
	}
	if len(b.rows) > 0 || b.err != nil {
		c.send(b)
	}
}

// send hands a batch over; false where nobody wants it any more.
func (c *cursor[T]) send(b batch[T]) bool {
	select {
	case c.full <- b:
		return true
	case <-c.quit:
		return false
	}
}

// empty is room for a batch, one that has been walked if there is one.
func (c *cursor[T]) empty() []T {
	select {
	case rows := <-c.free:
		return rows[:0]
	default:
		return make([]T, 0, batchRows)
	}
}

// advance moves to the next row; at damage err gets the error and the cursor ends.
func (c *cursor[T]) advance(err *error) {
	if c.at++; c.at < len(c.rows) {
		c.row = &c.rows[c.at]
		return
	}
	c.row = nil
	if c.rows != nil {
		select {
		case c.free <- c.rows:
		default:
		}
		c.rows = nil
	}
	b := batch[T]{err: c.after}
	if c.after == nil {
		b = <-c.full // empty at the end
	}
	if len(b.rows) > 0 {
		c.rows, c.at, c.row, c.after = b.rows, 0, &b.rows[0], b.err
		return
	}
	if b.err != nil && *err == nil {
		*err = b.err
	}
}

// stop ends the goroutine and waits for it.
func (c *cursor[T]) stop() {
	close(c.quit)
	<-c.done
}
