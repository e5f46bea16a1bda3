package oom

import "strings"

// cutSyslog5424 takes "1 2024-04-29T14:55:41.678Z HOST APP PROCID MSGID DATA " behind a priority.
func (h *head) cutSyslog5424(s string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(s, "1 ")
	if !ok {
		return s, false
	}
	st, rest, ok := cutISO(rest)
	if !ok {
		return s, false
	}
	var words [4]string
	for i := range words {
		if words[i], rest, ok = strings.Cut(strings.TrimPrefix(rest, " "), " "); !ok {
			return s, false
		}
	}
	switch {
	case strings.HasPrefix(rest, "- "):
		rest = rest[2:]
	case strings.HasPrefix(rest, "["):
		if i := strings.Index(rest, "] "); i >= 0 {
			rest = rest[i+2:]
		}
	}
	h.wall(st)
	if words[0] != "-" && h.host == "" {
		h.host = words[0]
	}
	if words[1] != "-" {
		h.tag = words[1]
	}
	return strings.TrimPrefix(rest, "\ufeff"), true
}

// stripPriority takes <4>, with the header of RFC 5424 where one follows.
func stripPriority(h *head, s string) string {
	t := strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(t, "<") {
		return s
	}
	if _, rest, ok := cutDigits(t[1:], 1, 3); ok && strings.HasPrefix(rest, ">") {
		if message, ok := h.cutSyslog5424(rest[1:]); ok {
			return message
		}
		return rest[1:]
	}
	return s
}

// stripFacility takes "kern  :warn  : " of dmesg -x.
func stripFacility(_ *head, s string) string {
	word := func(s string) (string, bool) {
		n := 0
		for n < len(s) && 'a' <= s[n] && s[n] <= 'z' {
			n++
		}
		rest := strings.TrimLeft(s[n:], " ")
		return strings.TrimPrefix(rest, ":"), n >= 3 && n <= 8 && strings.HasPrefix(rest, ":")
	}
	if !strings.HasPrefix(s, "kern") {
		return s
	}
	if rest, ok := word(s); ok {
		if rest, ok = word(rest); ok {
			return trimOne(rest)
		}
	}
	return s
}

// stripStream takes "stdout F " of a container runtime's log.
func stripStream(_ *head, s string) string {
	for _, p := range []string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		if strings.HasPrefix(s, p) {
			return s[len(p):]
		}
	}
	return s
}

// tags are programs whose name may stand before a message without a pid behind it.
var tags = map[string]bool{
	"kernel": true, "systemd": true, "systemd-oomd": true, "earlyoom": true, "dockerd": true,
	"containerd": true, "kubelet": true, "k3s": true, "lmkd": true, "lowmemorykiller": true,
	"nohang": true, "slurmstepd": true, "slurmd": true, "serialport": true,
}

// stripTag takes "HOST kernel: ", "kernel: ", "HOST systemd-oomd[666]: " and the like.
func stripTag(h *head, s string) string {
	t := strings.TrimLeft(s, " ")
	if tag, rest, ok := cutTag(t); ok {
		h.tag = tag
		return rest
	}
	if strings.HasPrefix(t, ": ") {
		return t[2:]
	}
	i := strings.IndexByte(t, ' ')
	if i < 1 || i > 64 || t[0] == '[' {
		return s
	}
	tag, rest, ok := cutTag(t[i+1:])
	if !ok {
		return s
	}
	h.tag = tag
	if host := t[:i]; strings.Trim(host, ".…") != "" && h.host == "" && h.stamp.kind != noStamp {
		h.host = host
	}
	return rest
}

// cutTag takes "name[pid]: ", or "name: " of a known program.
func cutTag(s string) (tag, rest string, ok bool) {
	n := 0
	for n < len(s) && n < 40 && tagByte(s[n]) {
		n++
	}
	tag, rest = s[:n], s[n:]
	if n == 0 {
		return "", s, false
	}
	known := tags[strings.ToLower(tag)]
	if strings.HasPrefix(rest, "[") {
		_, after, digits := cutDigits(rest[1:], 1, 10)
		if !digits || !strings.HasPrefix(after, "]") {
			return "", s, false
		}
		rest, known = after[1:], true
	}
	if !known || !strings.HasPrefix(rest, ":") || len(rest) > 1 && rest[1] != ' ' {
		return "", s, false
	}
	return tag, trimOne(rest[1:]), true
}

func tagByte(c byte) bool {
	return 'a' <= lower[c] && lower[c] <= 'z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '/' || c == '@' || c == '(' || c == ')'
}

// stripPipe takes "prover_1  | " of docker compose, and a Markdown table's first bar.
func stripPipe(_ *head, s string) string {
	t := strings.TrimLeft(s, " \t")
	if strings.HasPrefix(t, "| ") {
		return t[2:]
	}
	i := strings.Index(s, " | ")
	if i < 1 || i > 48 || strings.ContainsAny(strings.TrimSpace(s[:i]), " :[(=") {
		return s
	}
	return s[i+3:]
}
