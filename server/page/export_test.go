package page

import "time"

// SetTimes sets the time limits for reading messages and for highlighting code in a request.
func SetTimes(outline, code time.Duration) { outlining, highlighting = outline, code }
