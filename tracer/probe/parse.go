package probe

import "bytes"

// want is one figure to look for in a file: its place, and where in a reading it goes.
type want struct {
	key    []byte
	column int
	scale  float64
	index  int // row of the table
}

// reading is one tick's values by row of the table; ok says which were found.
type reading struct {
	value []float64
	ok    []bool
}

func newReading(rows int) reading { return reading{make([]float64, rows), make([]bool, rows)} }

// set keeps a figure. One of 2^62 or more is none: it means "no limit", or a counter that fell below zero.
func (r *reading) set(w *want, n uint64) {
	if n >= unlimited {
		return
	}
	r.value[w.index] = float64(n) * w.scale
	r.ok[w.index] = true
}

// unlimited is where a cgroup v1 limit stops being one: the kernel writes the largest multiple of a page below
// 2^63 for "none", and no machine has 2^62 bytes.
const unlimited = 1 << 62

// parse finds the wanted figures in a file's text. What is cut off, missing or no number is not set;
// it neither fails nor guesses: a last line without its newline may have lost digits, so it is left out.
func (r *reading) parse(text []byte, f format, wants []want) {
	switch f {
	case columns:
		r.parseColumns(text, wants)
	case cpuLine:
		if bytes.HasPrefix(text, allCPUs) {
			r.parseColumns(text, wants)
		}
	case keyed:
		r.parseKeyed(text, wants)
	case single:
		r.parseSingle(text, wants)
	case stalls:
		r.parseStalls(text, wants)
	}
}

// cutLine splits off the first whole line; ok is false when none is left.
func cutLine(text []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexByte(text, '\n')
	if i < 0 {
		return nil, nil, false
	}
	return text[:i], text[i+1:], true
}

// parseColumns reads the first line, column by column. A command name in parentheses may hold anything, so the
// columns after it count from the last closing one: it is column 1 (/proc/PID/stat).
func (r *reading) parseColumns(text []byte, wants []want) {
	line, _, ok := cutLine(text)
	if !ok {
		return
	}
	column := 0
	if i := bytes.LastIndexByte(line, ')'); i >= 0 {
		line, column = line[i+1:], 2
	}
	for {
		var token []byte
		token, line = cutToken(line)
		if len(token) == 0 {
			return
		}
		for i := range wants {
			if n, isNumber := parseUint(token); wants[i].column == column && isNumber {
				r.set(&wants[i], n)
			}
		}
		column++
	}
}

// parseKeyed reads lines of a key, an optional colon, and a number. The first line of a key counts.
func (r *reading) parseKeyed(text []byte, wants []want) {
	for {
		line, rest, ok := cutLine(text)
		if !ok {
			return
		}
		text = rest
		key, value := cutToken(line)
		key = bytes.TrimSuffix(key, colon)
		for i := range wants {
			if r.ok[wants[i].index] || !bytes.Equal(wants[i].key, key) {
				continue
			}
			token, _ := cutToken(value)
			if n, isNumber := parseUint(token); isNumber {
				r.set(&wants[i], n)
			}
		}
	}
}

// parseSingle reads one number; "max" is none.
func (r *reading) parseSingle(text []byte, wants []want) {
	line, _, ok := cutLine(text)
	if !ok {
		return
	}
	token, _ := cutToken(line)
	n, isNumber := parseUint(token)
	if !isNumber {
		return
	}
	for i := range wants {
		r.set(&wants[i], n)
	}
}

// parseStalls reads the total= of the lines that start with a wanted key.
func (r *reading) parseStalls(text []byte, wants []want) {
	for {
		line, rest, ok := cutLine(text)
		if !ok {
			return
		}
		text = rest
		key, fields := cutToken(line)
		at := bytes.LastIndex(fields, total)
		if at < 0 {
			continue
		}
		token, _ := cutToken(fields[at+len(total):])
		n, isNumber := parseUint(token)
		for i := range wants {
			if isNumber && bytes.Equal(wants[i].key, key) {
				r.set(&wants[i], n)
			}
		}
	}
}

var (
	colon = []byte(":")
	total = []byte(" total=")

	allCPUs = []byte("cpu ")
)

// cutToken splits off the first run of non-blanks; it is empty when only blanks are left.
func cutToken(line []byte) (token, rest []byte) {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	j := i
	for j < len(line) && line[j] != ' ' && line[j] != '\t' {
		j++
	}
	return line[i:j], line[j:]
}

// parseUint reads decimal digits and nothing else; a number past 64 bits is none.
func parseUint(token []byte) (n uint64, ok bool) {
	if len(token) == 0 {
		return 0, false
	}
	for _, c := range token {
		d := uint64(c - '0')
		if c < '0' || c > '9' || n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
