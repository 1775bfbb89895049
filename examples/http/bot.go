// Command http is the endpoint of a bot: it answers every message that Penstock
// posts to it.
package main

import (
	"encoding/json"
	"log"
	"net/http"
)

func main() {
	http.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		var message struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"text": "you said: " + message.Text})
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil)) //nolint:gosec // an example on loopback
}
