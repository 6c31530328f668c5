package usage

// SetWindowLimit sets the number of changed subjects and records at which a transaction ends. It returns what it was.
func SetWindowLimit(n int) int {
	was := windowLimit
	windowLimit = n
	return was
}

// Format is the format of the file.
const Format = format
