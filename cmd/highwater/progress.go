package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// step is how far something long has come. A Total of 0 is unknown.
type step struct {
	Phase       string
	Done, Total int
	Text        string // what else there is to say, short
}

// progress shows steps on stderr. Its methods may be called from any goroutine.
type progress interface {
	update(step)
	done() // ends the display; the last state stays on the screen
}

// linePeriod is how far plain lines are apart within one phase.
const linePeriod = 5 * time.Second

// newProgress is bars on a terminal, lines elsewhere, nothing with --quiet.
func (ui *tui) newProgress() progress {
	switch {
	case ui.quiet:
		return silence{}
	case isTerminal(ui.err):
		b := newBars(ui.err)
		ui.drawing.Store(b)
		return b
	}
	return &lines{ui: ui, now: time.Now}
}

// isTerminal says whether bars can be drawn on w: a terminal that knows its width.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && os.Getenv("TERM") != "dumb"
}

type silence struct{}

func (silence) update(step) {}
func (silence) done()       {}

// lines prints a step when its phase begins, every linePeriod, and when it completes its phase. A
// phase that was first heard of at work, and that is over within linePeriod, goes unmentioned.
type lines struct {
	ui    *tui
	now   func() time.Time
	mu    sync.Mutex
	last  step
	at    time.Time // of the last line, or of the phase's begin
	shown bool      // this phase has a line
}

func (l *lines) update(s step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begins := s.Phase != l.last.Phase
	ends := s.Total > 0 && s.Done == s.Total && l.last.Done != s.Done
	if begins {
		l.shown, l.at = false, l.now()
	}
	due := begins && s.Done == 0 || ends && l.shown || l.now().Sub(l.at) >= linePeriod && s != l.last
	if begins || due {
		l.last = s
	}
	if due {
		l.shown, l.at = true, l.now()
		l.ui.say("%s", s)
	}
}

func (l *lines) done() {}

// String is the step as a plain line.
func (s step) String() string {
	text := s.Phase
	if s.Total > 0 {
		text += fmt.Sprintf(" %d/%d", s.Done, s.Total)
	}
	if s.Text != "" {
		text += ": " + s.Text
	}
	return text
}

// bars draws a bar for a phase that counts, which stays when it is over, and a spinner for one that
// does not, which goes.
type bars struct {
	mu        sync.Mutex
	container *mpb.Progress
	phase     string
	bar       *mpb.Bar
	spins     bool
	// text is the current bar's. It is apart from mu: a bar reads it while it draws, and update waits
	// for the bar.
	text *atomic.Pointer[string]
}

func newBars(w io.Writer) *bars {
	return &bars{container: mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(200*time.Millisecond))}
}

func (b *bars) update(s step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil || s.Phase != b.phase {
		b.finish()
		b.start(s)
	}
	b.text.Store(&s.Text)
	if s.Total > 0 {
		b.bar.SetCurrent(int64(s.Done))
	}
}

func (b *bars) start(s step) {
	text := &atomic.Pointer[string]{}
	b.phase, b.text = s.Phase, text
	show := decor.Any(func(decor.Statistics) string {
		if t := text.Load(); t != nil {
			return "  " + *t
		}
		return ""
	})
	before := mpb.PrependDecorators(decor.Name(s.Phase, decor.WC{W: 9, C: decor.DindentRight}))
	elapsed := decor.Elapsed(decor.ET_STYLE_MMSS)
	b.spins = s.Total == 0
	if b.spins {
		b.bar = b.container.AddSpinner(0, before, mpb.AppendDecorators(elapsed, show), mpb.BarWidth(1))
		return
	}
	counts := decor.CountersNoUnit("%d/%d ")
	b.bar = b.container.AddBar(int64(s.Total), before, mpb.AppendDecorators(counts, elapsed, show))
}

// finish ends the current bar where it is: a phase that was cut short keeps its count.
func (b *bars) finish() {
	if b.bar != nil {
		b.bar.Abort(b.spins)
	}
}

// above prints line above the bars at their next refresh; false once they are done.
func (b *bars) above(line string) bool {
	_, err := b.container.Write([]byte(line))
	return err == nil
}

func (b *bars) done() {
	b.mu.Lock()
	b.finish()
	b.mu.Unlock()
	b.container.Wait()
}
