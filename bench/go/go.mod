module haul.example/bench/gofetch

go 1.21
