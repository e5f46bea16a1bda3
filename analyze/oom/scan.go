package oom

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Sizes of the reading: blocks of text, how far before a known word lines are read one by one, and
// how many lines after it.
const (
	blockBytes    = 4 << 20
	lookBack      = 64 << 10
	followStrong  = 400
	followWeak    = 60
	maxBatch      = 1 << 16  // lines kept until they are put into events
	maxBatchBytes = 48 << 20 // of their text
)

// scanner reads one input once, skipping what holds no known word, and hands the lines that do and
// those around them to its collector.
type scanner struct {
	in     *Input
	rules  *rules
	out    *collector
	small  bool  // the whole input is one block: read every line of it
	hot    int   // lines still to be read one by one, whether or not they hold a word
	no     int64 // number of the last line counted
	kernel int   // of them, lines that may be of a kernel's report
	held   line  // the last line, where it may go on in the next; without kind where there is none
	memo   dateMemo

	damage error // after which nothing could be read
}

// decode undoes gzip and UTF-16.
// What stands before damage is given; the damage is noted in damage.
func decode(r io.Reader, damage *error) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	switch {
	case bytes.Equal(magic, gzipMagic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		return &damagedEnd{r: z, err: damage}, nil
	case bytes.Equal(magic, utf16LE), bytes.Equal(magic, utf16BE):
		return &utf16Reader{r: b, big: magic[0] == 0xfe}, nil
	}
	return b, nil
}

// damagedEnd ends where its source is damaged, as a log does that is being rotated.
type damagedEnd struct {
	r   io.Reader
	err *error
}

func (d *damagedEnd) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		*d.err = err
		return n, io.EOF
	}
	return n, err //nolint:wrapcheck // the source's own end
}

// utf16Reader gives UTF-16 with a byte order mark as UTF-8: what a Windows shell's redirection
// writes.
type utf16Reader struct {
	r   *bufio.Reader
	big bool
	out []byte
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		var unit [2]byte
		if _, err := io.ReadFull(u.r, unit[:]); err != nil {
			return 0, io.EOF
		}
		c := rune(unit[0]) | rune(unit[1])<<8
		if u.big {
			c = rune(unit[1]) | rune(unit[0])<<8
		}
		if utf16.IsSurrogate(c) {
			c = utf8.RuneError
		}
		if c != 0xfeff {
			u.out = utf8.AppendRune(u.out, c)
		}
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// window is what the scanner holds of its input. Bytes up to read were read; those up to searched
// hold no known word, but the lines before one may be of its report.
type window struct {
	buf            []byte
	read, searched int
}

// scan reads all of r.
func (s *scanner) scan(r io.Reader) error {
	r, err := decode(r, &s.damage)
	if err != nil {
		return err
	}
	w := window{buf: make([]byte, 0, blockBytes+lookBack)}
	for first := true; ; first = false {
		n, err := io.ReadFull(r, w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		s.in.Bytes += int64(n)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return fmt.Errorf("read after %d bytes: %w", s.in.Bytes, err)
		}
		s.small = first && end
		whole := len(w.buf)
		if i := bytes.LastIndexByte(w.buf, '\n') + 1; !end && i > w.searched {
			whole = i // but for a line longer than the window, which is read in pieces
		}
		if s.small {
			s.in.Bytes = int64(len(w.buf))
			w.buf = s.rules.unfold(unpaste(spread(w.buf)))
			whole = len(w.buf)
		}
		if end && !s.small && whole > 0 && w.buf[whole-1] != '\n' && whole < cap(w.buf) {
			w.buf = append(w.buf, '\n') // a last "Killed" is found by its line's end
			whole++
		}
		s.block(&w, whole)
		if end {
			s.release()
			return nil
		}
		s.slide(&w, whole)
	}
}

// slide makes room for the next bytes: it keeps what may still be looked back at.
func (s *scanner) slide(w *window, whole int) {
	keep := w.read
	if far := whole - lookBack; far > keep {
		keep = whole
		if i := bytes.IndexByte(w.buf[far:whole], '\n'); i >= 0 {
			keep = far + i + 1
		}
	}
	s.no += int64(bytes.Count(w.buf[w.read:keep], newline))
	w.buf = w.buf[:copy(w.buf, w.buf[keep:])]
	w.read, w.searched = 0, whole-keep
}

var newline = []byte{'\n'}

// block reads what is worth reading of the window up to whole.
func (s *scanner) block(w *window, whole int) {
	if whole == 0 {
		return
	}
	text := unsafe.String(&w.buf[0], whole) // not kept: lines are copied by clean
	pos := w.searched
	for pos < whole {
		if s.out.kernel.full() {
			s.countOnly(text, pos)
			w.read = whole
			break
		}
		if s.small || s.hot > 0 {
			pos = s.nextLine(w, pos, whole)
			w.read = pos
			s.hot--
			s.kernel--
			continue
		}
		at := s.rules.finder.next(text, pos)
		if at < 0 {
			break
		}
		end := whole
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		if s.rules.fine(text[at:end]) {
			pos = end
			continue
		}
		pos = s.lookBack(w, at, s.rules.strongAt(text, at))
		s.hot = 1
	}
	w.searched = whole
}

// countOnly counts the events of a text of which no more are kept, by the line that begins each.
func (s *scanner) countOnly(text string, pos int) {
	s.hot, s.kernel = 0, 0
	for at := s.rules.finder.next(text, pos); at >= 0; at = s.rules.finder.next(text, at+1) {
		var space [8]int32
		for _, id := range s.rules.finder.at(text, at, space[:0]) {
			if s.rules.words[id].kind == kindInvoke {
				s.out.kernel.drop++
			}
		}
	}
}

// lookBack reads the lines before the one that holds the byte at, and gives where that one begins.
func (s *scanner) lookBack(w *window, at int, strong bool) int {
	start := max(bytes.LastIndexByte(w.buf[:at], '\n')+1, w.read)
	back := 4 << 10
	if strong {
		back = lookBack
	}
	from := w.read
	if far := start - back; far > from {
		from = start
		if i := bytes.IndexByte(w.buf[far:start], '\n'); i >= 0 {
			from = far + i + 1
		}
	}
	s.no += int64(bytes.Count(w.buf[w.read:from], newline))
	if strong {
		s.kernel = 1
	}
	for from < start {
		from = s.nextLine(w, from, start)
	}
	w.read = start
	return start
}

// nextLine reads the line at pos and gives where the next one begins.
func (s *scanner) nextLine(w *window, pos, whole int) int {
	end := whole
	if i := bytes.IndexByte(w.buf[pos:whole], '\n'); i >= 0 {
		end = pos + i
	}
	s.no++
	s.readLine(w.buf[pos:end])
	return min(end+1, whole)
}

// readLine classifies one raw line.
func (s *scanner) readLine(b []byte) {
	b = bytes.TrimRight(b, "\r \t\x00")
	if len(b) == 0 {
		return
	}
	b = b[:min(len(b), maxLine)]
	raw := unsafe.String(&b[0], len(b)) // only looked at here: keep clones what stays
	if !s.full() && s.rules.finder.next(raw, 0) < 0 && !looseField(raw) {
		return
	}
	text := clean(raw)
	h := head{stamp: unstamped}
	if strings.HasPrefix(strings.TrimLeft(text, " "), "{") {
		if inner, message, ok := unwrapJSON(text); ok {
			h, text = inner, message
		}
	}
	if strings.HasPrefix(text, `"`) && strings.Contains(text, `","`) { // a row of a CSV export
		text = strings.ReplaceAll(strings.Trim(text, `"`), `","`, " ")
	}
	for strings.IndexByte(text, '\n') >= 0 {
		var one string
		one, text, _ = strings.Cut(text, "\n")
		s.readText(&h, one)
	}
	s.readText(&h, text)
}

// full says whether every line is looked at closely, whether or not it holds a word.
func (s *scanner) full() bool { return s.small || s.kernel > 0 }

// readText classifies a line without wrapping; outer is what a wrapping said of it.
func (s *scanner) readText(outer *head, text string) {
	l := line{head: head{stamp: unstamped}, no: s.no}
	l.head.cut(&text, &s.memo)
	if strings.TrimSpace(text) == "" {
		return
	}
	l.msg = text
	l.head.within(outer)
	strong := false
	l.kind, l.rule, strong = s.rules.kindOf(text)
	if l.kind == kindNone {
		l.kind, l.rule = wordless(text)
	}
	switch {
	case strong:
		s.hot, s.kernel = followStrong, followStrong
	case l.kind > lastKernelKind && l.kind != kindFree:
		s.hot = max(s.hot, followWeak)
	}
	if s.held.kind != kindNone && s.continues(&l) {
		return
	}
	s.release()
	if l.kind != kindNone {
		s.held = l
		s.held.keep()
	}
}

// keep copies what a line refers to of the text being read.
func (l *line) keep() {
	l.msg = printable(l.msg)
	l.head.host, l.head.tag = printable(l.head.host), printable(l.head.tag)
	l.head.stamp.text, l.head.stamp.zone = printable(l.head.stamp.text), ""
	l.head.memo = nil
}

// within adds what the wrapping of a line knew to what the line itself says.
func (h *head) within(outer *head) {
	if outer.stamp.kind > noStamp {
		h.wall(outer.stamp)
		if outer.stamp.boot >= 0 && h.stamp.boot < 0 {
			h.stamp.boot = outer.stamp.boot
		}
	}
	if h.host == "" {
		h.host = outer.host
	}
	if h.tag == "" {
		h.tag = outer.tag
	}
}

// release hands the held line on.
func (s *scanner) release() {
	if s.held.kind != kindNone {
		s.out.add(&s.held)
		s.held = line{}
	}
}

// continues says whether l is the rest of the held line, which a terminal or a mail broke, and
// appends it then.
func (s *scanner) continues(l *line) bool {
	if l.head.stamp.kind != noStamp || l.head.tag != "" {
		return false
	}
	next := strings.TrimSpace(l.msg)
	marks := continuations[s.held.kind]
	if len(s.held.msg) > maxLine/2 || !containsAny(next, marks) || l.kind != kindNone &&
		l.kind != kindFrame {
		return false
	}
	if s.held.kind == kindConstraint && strings.Contains(s.held.msg, ",uid=") {
		return false
	}
	s.held.msg = glue(strings.TrimRight(s.held.msg, " "), next, s.held.kind == kindConstraint)
	return true
}

// continuations are what the rest of a broken line holds, by the line's kind.
var continuations = map[kind][]string{
	kindConstraint: {"task=", "pid=", "uid=", "memcg=", "mems_allowed=", ".scope", ".slice",
		"nodemask=", "cpuset="},
	kindKilled: {"rss:", "pgtables:", "oom_score_adj:", "UID:", "kB"},
	kindInvoke: {"order=", "oom_score_adj=", "gfp_mask=", "_adj=", "nodemask="},
	kindZone:   {"kB"},
	kindNode:   {"kB", "all_unreclaimable?"},
	kindUsage:  {"failcnt", "limit"},
}

func containsAny(s string, marks []string) bool {
	for _, m := range marks {
		if strings.Contains(s, m) {
			return true
		}
	}
	return false
}

// glue joins the parts of a broken line: with a blank where it broke between words.
func glue(a, b string, tight bool) string {
	if tight || a == "" || b == "" {
		return a + b
	}
	last := a[len(a)-1]
	if last == ',' || last == ')' || strings.HasSuffix(a, "kB") || strings.HasSuffix(a, "KB") {
		return a + " " + b
	}
	return a + b
}
