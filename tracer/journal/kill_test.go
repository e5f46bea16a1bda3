package journal

func childMain() bool { return false }
