title="ansiweather: the weather of a place"
source="deb ansiweather
deb bc"
hosts="api.openweathermap.org"
serve() {
    echo '{"cod":200,"name":"Bern","main":{"temp":7.5,"humidity":80,"pressure":1020,"feels_like":5},"wind":{"speed":3,"deg":90},
        "weather":[{"icon":"01d"}],"sys":{"sunrise":784108800,"sunset":784137600},"coord":{"lat":46.9,"lon":7.4},"dt":784111777,
        "timezone":0,"value":2}' | put api.openweathermap.org/data/2.5/weather
    echo '{"value":2}' | put api.openweathermap.org/data/2.5/uvi
}
run() { ansiweather -l Bern -k key -a false -i true -d false; }
