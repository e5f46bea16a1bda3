package oom

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"io"
	"maps"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean gives the text of a line without what pages, terminals and mails add to it: colours, HTML,
// NULs, hard blanks, a carriage return. It may hold several lines (an HTML break).
func clean(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '&' || c == '<' || c == 0xc2 {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = stripANSI(s)
	}
	if strings.IndexByte(s, '&') >= 0 {
		s = html.UnescapeString(s)
	}
	if strings.IndexByte(s, '<') >= 0 {
		s = stripTags(s)
	}
	return blanks.Replace(s)
}

// printable is a copy of s without what a terminal would act on and without invalid UTF-8: what a
// log holds is shown to people.
func printable(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' || c == 0x7f {
			return strings.Map(func(r rune) rune {
				if !unicode.IsPrint(r) {
					return -1
				}
				return r
			}, strings.ToValidUTF8(s, ""))
		}
	}
	return strings.Clone(s)
}

var blanks = strings.NewReplacer("\t", " ", "\u00a0", " ", "\x00", "", "\r", "")

// maxLine bounds what is read of one line.
const maxLine = 64 << 10

// stripANSI takes out escape sequences.
func stripANSI(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != 0x1b {
			out.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '[' {
			i++
			for i+1 < len(s) && (s[i+1] < '@' || s[i+1] > '~') {
				i++
			}
			i++
		}
	}
	return out.String()
}

// htmlTags are what pages wrap logs in; others, such as the kernel's own <TASK>, stay.
var htmlTags = []string{"br", "p", "pre", "code", "span", "div", "td", "tr", "li", "b", "i",
	"font", "a"}

// stripTags takes out HTML tags; a break becomes a new line.
func stripTags(s string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		out.WriteString(s[:i])
		s = s[i:]
		end := strings.IndexByte(s, '>')
		if end < 0 {
			break
		}
		name := strings.Trim(s[1:end], "/ ")
		name, _, _ = strings.Cut(name, " ")
		name = strings.TrimRight(strings.ToLower(name), "/")
		if !contains(htmlTags, name) {
			out.WriteByte('<')
			s = s[1:]
			continue
		}
		if name == "br" || name == "p" || name == "div" || name == "tr" || name == "li" {
			out.WriteByte('\n')
		}
		s = s[end+1:]
	}
	out.WriteString(s)
	return strings.Trim(out.String(), "\n")
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// spread writes a status in one line of JSON (docker inspect, kubectl get -o json) over several, as
// those programs print it: it is read line by line.
func spread(b []byte) []byte {
	t := bytes.TrimSpace(b)
	if lines := entries(t); lines != nil {
		return lines
	}
	if len(t) == 0 || t[0] != '{' && t[0] != '[' ||
		!bytes.Contains(t, []byte("OOMKilled")) && !bytes.Contains(t, []byte(`xitCode"`)) ||
		!json.Valid(t) {
		return b
	}
	var out bytes.Buffer
	if json.Indent(&out, t, "", " ") != nil {
		return b
	}
	return out.Bytes()
}

// entries writes the entries of a log that a collector printed as indented JSON (gcloud logging read,
// journalctl -o json-pretty) one a line; nil where t holds none.
func entries(t []byte) []byte {
	if len(t) == 0 || t[0] != '{' && t[0] != '[' || bytes.IndexByte(t, '\n') < 0 {
		return nil
	}
	var out bytes.Buffer
	found := false
	add := func(entry json.RawMessage) bool {
		if _, _, ok := unwrapJSON(string(entry)); !ok {
			return false
		}
		found = true
		_ = json.Compact(&out, entry) // it was parsed
		out.WriteByte('\n')
		return true
	}
	for d := json.NewDecoder(bytes.NewReader(t)); ; {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			if found && errors.Is(err, io.EOF) {
				return out.Bytes()
			}
			return nil
		}
		list := []json.RawMessage{one}
		if one[0] == '[' && json.Unmarshal(one, &list) != nil {
			return nil
		}
		for _, entry := range list {
			if !add(entry) {
				return nil
			}
		}
	}
}

// unpaste writes what was pasted without its line ends over lines again: one line that holds
// several of the kernel's stamps, or the two characters \n where lines ended.
func unpaste(b []byte) []byte {
	const least = 2
	if bytes.Count(b, newline) > least || len(b) == 0 {
		return b
	}
	if t := bytes.TrimSpace(b); len(t) > 0 && bytes.Count(b, escapedLine) >= least && t[0] != '{' {
		return bytes.ReplaceAll(b, escapedLine, newline)
	}
	out := make([]byte, 0, len(b)+64)
	found := 0
	for rest := b; ; {
		i := bytes.IndexByte(rest, '[')
		if i < 0 {
			out = append(out, rest...)
			break
		}
		end := bytes.IndexByte(rest[i:min(len(rest), i+32)], ']')
		out, rest = append(out, rest[:i]...), rest[i:]
		if _, ok := readBoot(string(rest[1:max(end, 1)])); ok {
			if found++; found > 1 && !bytes.HasSuffix(out, []byte("kernel: ")) {
				out = append(out, '\n')
			}
		}
		out, rest = append(out, '['), rest[1:]
	}
	if found < least {
		return b
	}
	return out
}

var escapedLine = []byte(`\n`)

// Widths at which terminals and pages break lines, and how many lines must be as long as the longest for
// that to be a break.
const (
	minFold   = 60
	maxFold   = 250
	leastFold = 3
)

// unfold joins the lines of a text that was broken at one column: several are exactly as long as the
// longest, and what follows them has no stamp of its own and is no line of a report by itself.
func (r *rules) unfold(b []byte) []byte {
	longest, many := 0, 0
	for l := range bytes.SplitSeq(b, newline) {
		switch n := utf8.RuneCount(bytes.TrimRight(l, "\r")); {
		case n > longest:
			longest, many = n, 1
		case n == longest:
			many++
		}
	}
	if longest < minFold || longest > maxFold || many < leastFold {
		return b
	}
	out := make([]byte, 0, len(b))
	joined := false
	for l := range bytes.SplitSeq(b, newline) {
		h, msg := cutHead(string(l))
		if len(out) > 0 && (!joined || h.stamp.kind != noStamp || r.begins(msg)) {
			out = append(out, '\n')
		}
		l = bytes.TrimRight(l, "\r")
		out = append(out, l...)
		joined = utf8.RuneCount(l) == longest
	}
	return out
}

// begins says whether a line is one of a report by itself, not the rest of the one before.
func (r *rules) begins(msg string) bool {
	if isRow(strings.TrimSpace(msg)) {
		return true
	}
	switch kind, _, _ := r.kindOf(msg); kind {
	case kindNone, kindCounter, kindFrame, kindCPU, kindCpuset, kindStats, kindPages, kindHeader,
		kindTaskIn, kindGroup, kindFree:
		return false
	default:
		return true
	}
}

// jsonMessages are the keys under which logs keep a line's text; jsonTimes those of its time.
var (
	jsonMessages = []string{"MESSAGE", "log", "message", "msg", "textPayload", "line", "@message"}
	jsonTimes    = []string{"time", "timestamp", "@timestamp", "ts", "receiveTimestamp"}
	jsonHosts    = []string{"_HOSTNAME", "hostname", "host"}
)

// unwrapJSON takes a line's message out of a JSON object, as journalctl -o json, docker's json-file
// and log collectors write one a line. ok is false where s is no such object.
func unwrapJSON(s string) (h head, message string, ok bool) {
	h.stamp = unstamped
	t := strings.TrimSuffix(strings.TrimSpace(s), ",")
	if !strings.HasPrefix(t, "{") || !strings.HasSuffix(t, "}") {
		return h, "", false
	}
	var m map[string]any
	if json.Unmarshal([]byte(t), &m) != nil {
		return h, "", false
	}
	if inner, ok := m["jsonPayload"].(map[string]any); ok { // Google's wrapping
		maps.Copy(m, inner)
	}
	for _, key := range jsonMessages {
		if message, ok = jsonText(m[key]); ok {
			break
		}
	}
	if !ok {
		return h, "", false
	}
	h.jsonTime(m)
	for _, key := range jsonHosts {
		if host, isText := m[key].(string); isText && h.host == "" {
			h.host = host
		}
	}
	h.tag, _ = m["SYSLOG_IDENTIFIER"].(string)
	return h, message, true
}

// jsonText is a text value; journald writes what is not UTF-8 as numbers.
func jsonText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []any:
		b := make([]byte, 0, len(v))
		for _, x := range v {
			n, ok := x.(float64)
			if !ok || n < 0 || n > 255 {
				return "", false
			}
			b = append(b, byte(n))
		}
		return string(b), len(b) > 0
	}
	return "", false
}

func (h *head) jsonTime(m map[string]any) {
	if us, ok := m["__REALTIME_TIMESTAMP"].(string); ok {
		if n, rest, ok := cutInt(us); ok && rest == "" && n < 1<<53 {
			h.wall(unixStamp(n*int64(time.Microsecond), 6))
		}
	}
	if us, ok := m["_SOURCE_MONOTONIC_TIMESTAMP"].(string); ok {
		if n, rest, ok := cutInt(us); ok && rest == "" && n < 1<<53 {
			h.boot(n * int64(time.Microsecond))
		}
	}
	for _, key := range jsonTimes {
		if st, ok := jsonStamp(m[key]); ok {
			h.wall(st)
			return
		}
	}
}

// jsonStamp reads a time as collectors write it: ISO, a numeric date, or a number of seconds, ms, µs or
// ns since 1970. A number is exact to a µs at best: JSON's are read as floating point.
func jsonStamp(v any) (stamp, bool) {
	switch v := v.(type) {
	case string:
		if st, _, ok := cutISO(v); ok {
			return st, true
		}
		st, _, ok := cutNumeric(v)
		return st, ok
	case float64:
		const from, to = 1e9, 1e10 // 2001 to 2286, in seconds
		for _, per := range []float64{1, 1e3, 1e6, 1e9} {
			if s := v / per; s >= from && s < to {
				return unixStamp(int64(math.Round(s*1e6))*int64(time.Microsecond), 6), true
			}
		}
	}
	return stamp{}, false
}

// oddities of what a file may be before its text can be read.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	utf16LE   = []byte{0xff, 0xfe}
	utf16BE   = []byte{0xfe, 0xff}
)
