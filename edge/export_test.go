package edge

// Endpoint is where a ticket of the server is good.
func Endpoint(s *Server) string { return s.endpoint() }
