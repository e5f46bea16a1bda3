package report

import "testing"

func TestTerminalWidth(t *testing.T) {
	for columns, want := range map[int]int{0: 80, 1: 40, 100: 100, 500: 140} {
		if got := terminalWidth(columns); got != want {
			t.Errorf("a terminal of %d columns: %d, want %d", columns, got, want)
		}
	}
}
