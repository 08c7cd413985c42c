export const App = () => <p>{x}</p>;
function F() {}