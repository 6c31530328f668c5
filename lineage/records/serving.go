package records

import "time"

// Serving states where a store is served.
type Serving struct {
	Store string `json:"store"`
	URL   string `json:"url"`
	// Link opens the page. It works once, within a minute.
	Link     string `json:"link,omitempty"`
	ReadOnly bool   `json:"read_only"`
}

func (*Serving) RecordType() string { return "serving" }

// Token is a token for programs, with its rights.
type Token struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Writes bool   `json:"writes"`
	// Users and Projects restrict the token to some threads.
	Users     []string   `json:"users,omitempty"`
	Projects  []string   `json:"projects,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Secret is printed once, when the token is created.
	Secret string `json:"secret,omitempty"`
}

func (*Token) RecordType() string { return "token" }
