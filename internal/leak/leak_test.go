package leak

import "testing"

func TestMain(m *testing.M) { Main(m, nil) }

// TestFind finds a goroutine that stays, and none once it has gone.
func TestFind(t *testing.T) {
	stay, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		<-stay
	}()
	if err := find(0); err == nil {
		t.Error("a goroutine that stays was not found")
	}
	close(stay)
	<-gone
	if err := find(patience); err != nil {
		t.Error(err)
	}
}
